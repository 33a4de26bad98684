"""Runs, audits and flaggings on disk: folders that are there whole or not at all, hashed, and read back to the bit."""
