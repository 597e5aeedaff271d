"""The version before and this one, side by side on one database (`make test-upgrade`)."""
