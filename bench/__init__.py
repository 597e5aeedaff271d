"""Benchmarks: what the service does a second, beside a reference measured in the same run."""
