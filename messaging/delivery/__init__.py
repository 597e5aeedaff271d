"""Claim, prepare, send, record; failover and fallback; the sweeper."""
