"""Dataset inference: was a collection of texts used? Snippets, synthetic held-out texts, tests, checks, verdict."""
