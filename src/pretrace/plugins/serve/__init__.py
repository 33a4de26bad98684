"""A page on this machine: look at a text, test a collection, read results; its own server, security and jobs."""
