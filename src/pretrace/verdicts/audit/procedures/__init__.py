"""The literature's hypothesis tests on membership scores.

Each is a function of (features, *, classifier, seed, settings) that returns an `Answer`; its settings are a
frozen dataclass beside it.
"""
