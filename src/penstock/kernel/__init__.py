"""The engine: runs every step of an app over blocks of messages, which are Arrow columns; it does not know Spark."""
