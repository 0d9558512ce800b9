"""Kafka for routes: topics as they are found, read by ranges of offsets, written in transactions."""
