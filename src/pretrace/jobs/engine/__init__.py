"""Workers on a Ray cluster: actors that open the models once and are handed shards, batches or texts to count."""
