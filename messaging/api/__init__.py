"""The REST calls. Each reads its input, makes one call of the domain, and answers."""
