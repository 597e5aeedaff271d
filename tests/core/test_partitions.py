"""Partitions by month: made ahead, and nothing lost where they were not."""

from datetime import UTC, datetime

import pytest
from django.db import connection

from messaging.models import MessageContent
from rme.core import ids, partitions

pytestmark = pytest.mark.django_db(transaction=True)
TABLE = MessageContent._meta.db_table
FAR = datetime(2031, 5, 10, tzinfo=UTC)


def where(identifier):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT tableoid::regclass::text FROM {TABLE} WHERE id = %s", [identifier])
        return cursor.fetchone()[0]


def test_what_the_default_partition_took_is_moved_to_its_month():
    identifier = ids.at_least(FAR)
    MessageContent.objects.create(pk=identifier, organization_id="acme", body={})
    assert where(identifier) == f"{TABLE}_default"
    made = partitions.create_ahead([TABLE], now=FAR, months=1)
    try:
        assert made == [f"{TABLE}_203105", f"{TABLE}_203106"]
        assert where(identifier) == f"{TABLE}_203105"
        assert partitions.create_ahead([TABLE], now=FAR, months=1) == []
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {', '.join(made)}")
