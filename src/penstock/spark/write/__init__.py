"""Write the sinks of an app: tasks stage files, and the driver publishes them under the key of the run or batch."""
