"""History, trace, health, metrics."""
