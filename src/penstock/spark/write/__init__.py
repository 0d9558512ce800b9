"""Spark's ends of the sinks: tasks stage files, the driver publishes them under the key of the run or batch."""
