"""Everything that touches the host: connection, commands, files, systemd, journal, GPU."""
