"""Kafka as the last level: one record of a Kafka topic for each message, at the same offset."""
