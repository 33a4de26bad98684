"""Marking before publication: variants of every text, one of which is drawn by lot and published, and the exact tests
that this allows afterwards."""
