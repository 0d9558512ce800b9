"""YAML, both ways: values that know where they stand in their file, and expressions and functions as text."""
