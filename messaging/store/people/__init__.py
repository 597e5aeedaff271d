"""What messages hold of a person: `erasure` and `export`."""
