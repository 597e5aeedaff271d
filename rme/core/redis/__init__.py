"""Redis: the client, counters, heartbeats, hints and rate limits."""
