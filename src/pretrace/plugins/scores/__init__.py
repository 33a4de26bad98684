"""Scores that never lead in the comparison of methods and that no paper of the core rests on."""
