"""Apps whose messages need not leave the task that reads them: decoded, routed, written and counted there."""
