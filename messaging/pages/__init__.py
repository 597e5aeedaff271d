"""Pages for recipients."""
