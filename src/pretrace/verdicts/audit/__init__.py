"""Was a model trained on a collection of texts? Snippets, held-out texts, tests, checks and the verdict."""
