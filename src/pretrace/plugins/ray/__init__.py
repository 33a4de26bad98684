"""Work that is divided among the machines of a Ray cluster (`--ray`)."""
