"""Everything that knows about Spark: Java, sessions, and the tasks in which the kernel runs the routes of an app."""
