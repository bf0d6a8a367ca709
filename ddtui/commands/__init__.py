"""One file per command, each thin over the rooms."""
