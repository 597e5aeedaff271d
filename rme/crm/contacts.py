"""Contacts of an organization's platform, whichever that is."""

from collections.abc import Sequence

from rme.crm.connectors import REGISTRY
from rme.crm.connectors.base import ContactRecord


def get_contacts(organization_id: str, contact_ids: Sequence[str]) -> dict[str, ContactRecord]:
    """Find contacts of one organization by id; unknown ids are not in the answer."""
    if not contact_ids:
        return {}
    return REGISTRY["embedded"](organization_id).get_contacts(contact_ids)
