"""Hypothesis tests on membership scores: the literature's, and one of ours for audits without a placebo.

Each is a function of (features, *, classifier, seed, settings) that returns an `Answer`; its settings are a
frozen dataclass beside it.
"""
