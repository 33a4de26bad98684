"""Reports of finished results: `run`, `audit` and `flags` each have `render` and `write`; `heat` prints a text's tokens."""
