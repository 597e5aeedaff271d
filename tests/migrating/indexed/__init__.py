"""An app whose table gets an index and loses it, for tests/test_migrate.py."""
