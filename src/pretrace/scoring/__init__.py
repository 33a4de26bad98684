"""Texts, scores and models become a run: planned once, read once, scored and evaluated."""
