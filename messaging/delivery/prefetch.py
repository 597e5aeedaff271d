"""Reading at once, for many organizations, what the windows of each look up: five queries however
many organizations a claim is of.
"""

from collections.abc import Sequence

from messaging.content import templates
from messaging.delivery.claims import Claim
from messaging.policy import organization_policy
from messaging.webhooks import endpoints
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import embedded_contacts
from rme.tenants import organizations


def read_ahead(claims: Sequence[Claim]) -> dict[str, dict[str, ContactRecord]]:
    """Fill the caches that preparing and recording these claims read.

    Return the contacts that organizations keep here, by organization; nothing for a single claim,
    which reads its own.
    """
    if len(claims) < 2:
        return {}
    organization_ids = [claim.organization_id for claim in claims]
    organizations.get_many(organization_ids)
    organization_policy.of_many(organization_ids)
    endpoints.subscriptions(organization_ids)
    contacts = embedded_contacts(
        {
            claim.organization_id: list({each.contact_id for each in claim.deliveries})
            for claim in claims
        }
    )
    templates.prefetch_versions(
        {
            delivery.template_version_id: claim.organization_id
            for claim in claims
            for delivery in claim.deliveries
            if delivery.template_version_id is not None
        }
    )
    return contacts
