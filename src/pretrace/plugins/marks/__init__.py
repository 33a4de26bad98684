"""Marks that one leaves before publication, and random strings."""
