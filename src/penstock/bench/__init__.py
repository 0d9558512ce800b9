"""Benchmarks: every number is a ratio within one run, and every answer is checked before it is timed."""
