"""HTML: where a variable stands in it, which URLs it may hold, and its plain text."""
