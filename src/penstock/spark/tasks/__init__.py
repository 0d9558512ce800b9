"""Run an app inside Spark's tasks: the task that reads messages decodes, routes, writes and counts them."""
