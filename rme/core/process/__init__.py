"""What processes do around their work: memory, threads, time budgets and error boundaries."""
