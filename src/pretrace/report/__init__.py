"""Results as pages: `run`, `audit` and `flags` each have `render` and `write`; `heat` colours a text's tokens."""
