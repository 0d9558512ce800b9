"""One Enterprise Integration Pattern per file: its node, its place in the taxonomy, what it reads and writes."""
