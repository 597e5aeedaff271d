"""The embedded platform: records in our own tables."""

from collections.abc import Sequence

import orjson
from django.db import connection

from rme.core import ids
from rme.crm.connectors.base import Connector, ContactRecord, Record
from rme.crm.connectors.embedded_records import RECORDS
from rme.crm.models import Contact

# Written out, because every accept runs it: the ORM's making of the statement costs as much as
# the statement.
_CONTACTS = f"""
SELECT id::text, first_name, last_name, email, mobile, language, zone
FROM {Contact._meta.db_table} WHERE organization_id = %s AND id = ANY(%s)
"""


class Embedded(Connector):
    """Read records of one organization from PostgreSQL."""

    def get_contacts(self, contact_ids: Sequence[str]) -> dict[str, ContactRecord]:
        keys = [key for text in contact_ids if (key := ids.parse(text))]
        with connection.cursor() as cursor:
            cursor.execute(_CONTACTS, [self.organization_id, keys])
            return {row[0]: ContactRecord(*row) for row in cursor.fetchall()}

    def get_records(self, record_ids: Sequence[str]) -> dict[str, Record]:
        keys = [key for text in record_ids if (key := ids.parse(text))]
        with connection.cursor() as cursor:
            cursor.execute(RECORDS, {"organization": self.organization_id, "ids": keys})
            found = [orjson.loads(text) for (text,) in cursor.fetchall()]
        return {record["id"]: record for record in found}
