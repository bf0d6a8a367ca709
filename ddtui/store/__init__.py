"""The history in SQLite; exports and reports."""
