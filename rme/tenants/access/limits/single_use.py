"""What may be used once: codes, assertions and tickets, by their digests, until they expire."""

from datetime import datetime

from django.db import connection

from rme.core.db import clock
from rme.tenants.models import Assertion


def store_once(digest: str, until: datetime) -> bool:
    """Store a digest until a time; return False if it is there already. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {Assertion._meta.db_table} (digest, expires_at) VALUES (%s, %s) "
            "ON CONFLICT DO NOTHING",
            [digest, until],
        )
        return bool(cursor.rowcount)


def purge() -> int:
    """Delete expired digests; return how many."""
    return Assertion.objects.filter(expires_at__lt=clock.now()).delete()[0]
