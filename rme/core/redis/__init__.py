"""Redis. Nothing depends on it: without Redis limits are open and workers poll PostgreSQL.

- `connection`: the connection pool, and each thread's own connection for frequent commands
- `hints`: whether a periodic task was started lately
- `heartbeats`: which processes of workers live, and which of their tasks fail
- `host_checks`: checks of hosts that people typed: which run, and their results
- `rate_limits`: limits of calls and sends that hold across processes
"""
