"""The executable definition: plain Python, one message at a time. Slow, obvious, and right by definition."""
