"""What is done with blocks of messages: Arrow columns, without Spark."""
