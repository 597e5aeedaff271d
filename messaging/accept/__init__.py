"""A request becomes rows: planning, dry run, idempotency, cancel, wait."""
