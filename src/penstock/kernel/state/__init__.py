"""Steps that remember: what they hold, and what becomes of the messages that meet it."""
