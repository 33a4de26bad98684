"""Which of these texts were seen: each is held against known non-members."""
