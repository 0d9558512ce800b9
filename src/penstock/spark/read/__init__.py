"""Spark's ends of the sources: Python data sources that decode a whole Arrow batch where it is read."""
