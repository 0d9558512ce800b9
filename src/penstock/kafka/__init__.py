"""Kafka for routes: find and make topics, read ranges of offsets, send batches in transactions."""
