"""PostgreSQL: connections, statements, transitions, locks and partitions."""
