"""Verdicts without an earlier checkpoint: tests whose null distribution is known by construction, or that rest on one
stated assumption."""
