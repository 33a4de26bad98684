"""Servers: what they answer, and those that lie."""
