"""The papers' benchmarks, read from the hub or from files in the published schema.

A new benchmark is its columns and address in `schemas.toml`, its card in `cards.toml`, and a function in `loaders` that
returns a `Corpus`, under `@corpora.add("name")`.
"""
