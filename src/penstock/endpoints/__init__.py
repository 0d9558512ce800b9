"""Sources and sinks: what they are called and how they are set up. `spark/` makes them real."""
