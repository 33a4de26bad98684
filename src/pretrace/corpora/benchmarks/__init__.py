"""The papers' benchmarks, read from the hub or from files in the published schema; their cards are in `cards.toml`.

A new benchmark is a function that returns a `Corpus` with its `Card`, under `@corpora.add("name")`.
"""
