"""Calls of bots that look up and create on each platform, and on those that are broken."""
