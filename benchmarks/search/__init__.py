"""Search in corpora, and recitation."""
