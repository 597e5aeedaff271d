"""Reading at once, for many organizations, what the windows of each look up: four queries however
many organizations a claim is of.
"""

from collections.abc import Sequence

from messaging import endpoints, policy, templates
from messaging.claiming import Claim
from rme.tenants import organizations


def read_ahead(claims: Sequence[Claim]) -> None:
    """Fill the caches that preparing and recording these claims read."""
    if len(claims) < 2:
        return
    organization_ids = [claim.organization_id for claim in claims]
    organizations.get_many(organization_ids)
    policy.of_many(organization_ids)
    endpoints.subscriptions(organization_ids)
    templates.read_ahead(
        {
            delivery.template_version_id: claim.organization_id
            for claim in claims
            for delivery in claim.deliveries
            if delivery.template_version_id is not None
        }
    )
