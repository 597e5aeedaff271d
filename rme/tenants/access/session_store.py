"""Sessions in the database (`SESSION_ENGINE`), which tell an outage from a session that is gone."""

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.db import DatabaseError

from rme.core.db import availability


class SessionStore(db.SessionStore):
    """Django's store. It takes each error of the database for a session that was deleted, which is
    answered 400; an outage, or a server that is read-only, is answered 503 by its own error.
    """

    def save(self, must_create: bool = False) -> None:
        """Store the session. Raises UpdateError if it was deleted, or DatabaseError."""
        try:
            super().save(must_create)
        except UpdateError as error:
            away = error.__context__
            # "Forced update did not affect any rows" has no cause: Django raises it itself.
            if not isinstance(away, DatabaseError) or away.__cause__ is None:
                raise
            if not availability.is_unavailable(away):
                raise
            raise away from away.__cause__
