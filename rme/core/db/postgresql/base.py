"""The backend that `DATABASES` names (https://docs.djangoproject.com/en/5.2/ref/databases/).

Django's own with a pool has a health check that costs a round trip for each request. This one
costs a look at the socket.
"""

import psycopg
from django.db.backends.postgresql import base

from rme.core.db import availability
from rme.core.process import threads


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that is alive when it is handed out."""

    def get_connection_params(self) -> dict[str, object]:
        params = super().get_connection_params()
        if "options" in params:  # a pooler in transaction mode would refuse them
            params["options"] += availability.server_options()
        return params

    def get_new_connection(self, conn_params: object) -> object:
        """Take one that is alive out of the pool. Raises psycopg.OperationalError.

        A process without memory for a connection ends. It would take the database for away as long
        as it lives.
        """
        availability.reach.require()
        while True:
            try:
                raw = super().get_new_connection(conn_params)
            except (psycopg.OperationalError, RuntimeError, MemoryError):
                threads.require_room("a connection had no memory")
                raise
            if availability.is_alive(raw):
                return raw
            raw._pool.putconn(raw)  # which replaces it
