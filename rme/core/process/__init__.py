"""What processes do around their work: memory, threads and time budgets."""
