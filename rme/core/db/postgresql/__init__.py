"""Django's backend for PostgreSQL, with connections that are checked and bounded."""
