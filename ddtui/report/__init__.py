"""Reports and exports of the history: tables, Markdown, a page with charts, files for other tools."""
