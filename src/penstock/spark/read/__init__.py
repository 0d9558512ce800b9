"""Read the sources of an app inside Spark's tasks: a file for every kind of source, with its pieces and its stream."""
