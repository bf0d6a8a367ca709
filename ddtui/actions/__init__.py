"""The actions: everything the operator can do in the console, by name. Knows nothing of Textual."""
