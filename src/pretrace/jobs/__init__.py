"""Runs over more texts than memory holds: the texts in shards, each scored into a part of the table on disk."""
