"""Benchmarks made from texts a user has: dated collections, PatentMIA, CCNewsPDD."""
