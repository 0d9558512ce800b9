"""The driver's part of state: which files of state count after which batch, and the files of messages that wait."""
