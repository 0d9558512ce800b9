"""Everything that knows about Spark: the runtime under it, sessions, and routes as Spark queries."""
