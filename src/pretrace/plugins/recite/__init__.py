"""Recitation: words of a text that a model prints."""
