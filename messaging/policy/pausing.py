"""Ending a pause: what waited for it goes at once."""

from django.db import connection

from messaging.models import Delivery


def resume(organization_id: str) -> int:
    """Make due what waits for a pause; those that still are paused go back to waiting.

    Gives how many deliveries that was.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {Delivery._meta.db_table} SET due_at = statement_timestamp() "
            "WHERE organization_id = %s AND status = 'ACCEPTED' AND waiting = 'PAUSED'",
            [organization_id],
        )
        return int(cursor.rowcount)
