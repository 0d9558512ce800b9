"""Coverage-guided fuzzing of everything that reads bytes which others wrote: `python -m tests.fuzz`."""
