"""The health of provider accounts: circuits, rates, concurrency, routing."""
