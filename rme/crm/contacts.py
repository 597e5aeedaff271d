"""Contacts and other records of an organization's platform, whichever that is."""

from collections.abc import Sequence

from rme.crm.connectors import REGISTRY
from rme.crm.connectors.base import ContactRecord, Record


def get_contacts(organization_id: str, contact_ids: Sequence[str]) -> dict[str, ContactRecord]:
    """Find contacts of one organization by id; unknown ids are not in the answer."""
    if not contact_ids:
        return {}
    return REGISTRY["embedded"](organization_id).get_contacts(contact_ids)


def get_records(organization_id: str, record_ids: Sequence[str]) -> dict[str, Record]:
    """Find records of one organization by id, of any kind; unknown ids are not in the answer."""
    if not record_ids:
        return {}
    return REGISTRY["embedded"](organization_id).get_records(record_ids)
