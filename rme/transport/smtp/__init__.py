"""SMTP (RFC 5321)."""
