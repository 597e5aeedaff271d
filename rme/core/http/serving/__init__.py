"""From an ASGI server to the application: bodies in, sets and threads, answers out."""
