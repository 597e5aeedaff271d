"""The embedded platform: records in our own tables."""

from collections.abc import Sequence

from rme.core import ids
from rme.crm.connectors.base import Connector, ContactRecord
from rme.crm.models import Contact


class Embedded(Connector):
    """Read records of one organization from PostgreSQL."""

    def get_contacts(self, contact_ids: Sequence[str]) -> dict[str, ContactRecord]:
        wanted = {key: text for text in contact_ids if (key := ids.parse(text))}
        rows = Contact.objects.filter(
            organization_id=self.organization_id, id__in=list(wanted)
        ).values_list("id", "first_name", "last_name", "email", "mobile", "language", "zone")
        return {wanted[row[0]]: ContactRecord(wanted[row[0]], *row[1:]) for row in rows}
