"""Models that are trained here: planted ones, whose members are known, and tuned copies of others."""
