"""The embedded demo host: an SSH server and an SGLang stand-in, simulated and labelled so."""
