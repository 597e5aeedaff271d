"""Clients of the REST API, and the generator of their types and methods."""
