"""Read what the requests of a set name: contacts, devices, records and templates."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from messaging.content import templates
from messaging.content.templates import ActiveTemplates
from messaging.domain.channels import Channel
from messaging.domain.planning import Outline
from push.active_devices import DeviceRecord, active_devices_of_many
from rme.crm.connectors.records import ContactRecord, Record
from rme.crm.contacts import embedded_contacts, get_contacts, get_records


class Sources(NamedTuple):
    """What the requests of a set name and their contents are made of, by organization."""

    contacts: Mapping[str, Mapping[str, ContactRecord]]
    devices: Mapping[str, Mapping[str, Sequence[DeviceRecord]]]
    """By contact, if a push may go there; with the devices of TEST applications."""
    records: Mapping[str, Mapping[str, Record]]
    """As they are now; templates may use them."""
    templates: Mapping[str, ActiveTemplates]
    """The active versions, in all languages and for all channels."""


def read_sources(outlines: Sequence[Outline]) -> Sources:
    """Read what the requests name, each kind once for all of them."""
    contact_ids = _by_organization(
        (each.request.organization.id, recipient.contact_id)
        for each in outlines
        for recipient in each.request.recipients
    )
    embedded = embedded_contacts(contact_ids)
    push_contacts = _by_organization(
        (each.request.organization.id, recipient.contact_id)
        for each in outlines
        if Channel.PUSH in each.channels
        for recipient in each.request.recipients
    )
    # One query for each organization: calls that are accepted together name no record.
    record_ids = _by_organization(
        (each.request.organization.id, each.request.record_id)
        for each in outlines
        if each.request.record_id
    )
    names = _by_organization(
        (each.request.organization.id, each.request.template.name)
        for each in outlines
        if each.request.template
    )
    return Sources(
        contacts={
            organization_id: get_contacts(organization_id, ids, embedded[organization_id])
            for organization_id, ids in contact_ids.items()
        },
        devices=active_devices_of_many(push_contacts) if push_contacts else {},
        records={
            organization_id: get_records(organization_id, ids)
            for organization_id, ids in record_ids.items()
        },
        templates=templates.find_active_of_many(names),
    )


def _by_organization(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group values by organization, each value once."""
    groups: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for organization_id, value in pairs:
        groups[organization_id][value] = None
    return {organization_id: list(values) for organization_id, values in groups.items()}
