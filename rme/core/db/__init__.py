"""PostgreSQL: connections, statements, locks and partitions."""
