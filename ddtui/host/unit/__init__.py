"""Reading a unit as systemd does, finding the server in it, and changing one flag where it lives.

Pure: everything works over a `Tree` of files and does no I/O of its own.

- systemd: `syntax` (lines), `words`, `specifiers`, `environment`, `exec_line`, `merge` (which files count);
- the way to the server: `launch` goes through `wrappers`, shells (`shell*`), `container`, `compose` and
  `quadlet` to one of the `engines`; `flags` and `sglang_config` say what it is given;
- `analysis` puts these together, `read` says it as a `UnitReading`, `inspect` offline;
- writing: `change`, by `turning*`, through `drop_in`, `edit` and the `layers` of quoting; `stale` watches.

What makes writing exact: all of it reads `text` that remembers, for every character, where it stands.
"""
