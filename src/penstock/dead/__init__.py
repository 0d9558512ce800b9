"""Dead letters as a table: found, chosen by a condition, shown, and sent through the app again."""
