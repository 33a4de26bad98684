"""Models behind servers: asked for the log-probabilities of prompts, checked before any text is sent."""
