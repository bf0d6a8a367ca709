"""The console in a browser on this machine: a page behind a token, and a console process behind each tab."""
