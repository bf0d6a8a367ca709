"""The programs of the demo host, by name: what they print and how they end, as the real ones do."""
