"""Which method is best: one table of all of them, put together from files that anybody can add to."""
