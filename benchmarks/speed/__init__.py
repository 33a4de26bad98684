"""How fast: forward passes, scores, and a GPU."""
