"""An app whose one migration changes the table of messages, for tests/test_migrate.py."""
