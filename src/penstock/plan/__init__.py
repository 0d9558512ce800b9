"""The checked graph behind an app, and the ways to look at it."""
