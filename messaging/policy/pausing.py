"""End a pause: the deliveries that waited for it are due at once."""

from django.db import connection

from messaging.models import Delivery


def resume(organization_id: str) -> int:
    """Make the deliveries due that wait for a pause, and return how many those were.

    Those that another pause covers will wait again.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {Delivery._meta.db_table} SET due_at = statement_timestamp() "
            "WHERE organization_id = %s AND status = 'ACCEPTED' AND waiting = 'PAUSED'",
            [organization_id],
        )
        return int(cursor.rowcount)
