"""Is a text in this corpus? The corpus is read once, past a table of the texts: exact, and without an index."""
