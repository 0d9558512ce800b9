"""The multilevel message log: the newest messages in the fastest level, all of them in a durable one."""
