"""Read at once, for many organizations, what their windows look up: five queries however many
organizations the batches are of.
"""

from collections.abc import Sequence

from messaging.content import templates
from messaging.delivery.claims import Batch
from messaging.policy import organization_policy
from messaging.webhooks import endpoints
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import embedded_contacts
from rme.tenants import organizations


def read_ahead(batches: Sequence[Batch]) -> dict[str, dict[str, ContactRecord]]:
    """Fill the caches that preparing and recording these batches read.

    Return the contacts that organizations keep here, by organization; nothing for a single batch,
    which reads its own.
    """
    if len(batches) < 2:
        return {}
    organization_ids = [batch.organization_id for batch in batches]
    organizations.get_many(organization_ids)
    organization_policy.of_many(organization_ids)
    endpoints.subscriptions(organization_ids)
    contacts = embedded_contacts(
        {
            batch.organization_id: list({each.contact_id for each in batch.deliveries})
            for batch in batches
        }
    )
    templates.prefetch_versions(
        {
            delivery.template_version_id: batch.organization_id
            for batch in batches
            for delivery in batch.deliveries
            if delivery.template_version_id is not None
        }
    )
    return contacts
