"""What steps remember: keyed tables in hash buckets, and the algorithms that work on them a batch at a time."""
