"""Reading a unit as systemd does, finding the server's launch command in it, and changing one flag where it
lives.

Pure: everything works over a `Tree` of files and does no I/O of its own.
"""
