"""Contacts and other records of an organization, from its platform."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog
from django.utils.translation import gettext

from rme.core import errors, ids
from rme.core.cache import TtlCache
from rme.core.outbound import outbound_transport
from rme.crm import platforms
from rme.crm.connectors import REGISTRY, REMOTE
from rme.crm.connectors.base import Connector, Deadline, PlatformError, PlatformLimit
from rme.crm.connectors.embedded.connector import contacts_of_many
from rme.crm.connectors.records import ContactRecord, Record

log = structlog.get_logger(__name__)

CACHE_SECONDS = 60.0
BUDGET_SECONDS = 10.0
"""How long the platform may take for the recipients of one request or one batch."""

_contacts: TtlCache[tuple[str, str], ContactRecord] = TtlCache(CACHE_SECONDS, size=20_000)


def connector_of(organization_id: str) -> Connector:
    """Return the connector for an organization's platform."""
    kind = platforms.get(organization_id).kind
    if kind in REMOTE:
        return REMOTE[kind](organization_id, transport=outbound_transport())
    return REGISTRY[kind](organization_id)


def get_contacts(
    organization_id: str,
    contact_ids: Sequence[str],
    embedded_records: Mapping[str, ContactRecord] | None = None,
) -> dict[str, ContactRecord]:
    """Return contacts of one organization by id; unknown ids are missing from the result.

    Contacts of a remote platform are cached for a minute. Pass the result of `embedded_contacts`
    as `embedded_records` if you have it. Raise Unavailable if the platform fails.
    """
    embedded, remote = _split(contact_ids)
    if embedded_records is not None:
        contacts = dict(embedded_records)
    else:
        contacts = REGISTRY["embedded"](organization_id).get_contacts(embedded) if embedded else {}
    if remote and platforms.get(organization_id).kind != platforms.EMBEDDED:
        contacts |= _remote_contacts(organization_id, remote)
    return contacts


def embedded_contacts(
    ids_by_organization: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, ContactRecord]]:
    """Return the embedded contacts by organization and id, by one query."""
    return contacts_of_many(
        {each: _split(contact_ids).embedded for each, contact_ids in ids_by_organization.items()}
    )


def find_by_mobile(organization_id: str, numbers: Sequence[str]) -> dict[str, list[ContactRecord]]:
    """Return contacts of one organization by mobile number (E.164); several may share one."""
    if not numbers:
        return {}
    return connector_of(organization_id).find_by_mobile(numbers)


def get_records(organization_id: str, record_ids: Sequence[str]) -> dict[str, Record]:
    """Return records of any kind by id; unknown ids are missing from the result.

    Raise Unavailable if a remote platform fails.
    """
    embedded, remote = _split(record_ids)
    records = REGISTRY["embedded"](organization_id).get_records(embedded) if embedded else {}
    if remote and platforms.get(organization_id).kind != platforms.EMBEDDED:
        try:
            connector = connector_of(organization_id)
            records |= connector.get_records(remote, deadline=Deadline.after(BUDGET_SECONDS))
        except PlatformError as error:
            raise _unavailable(organization_id, error) from error
    return records


class _Ids(NamedTuple):
    embedded: list[str]
    remote: list[str]


def _split(record_ids: Sequence[str]) -> _Ids:
    """Return embedded ids, which are UUIDs, and a platform's ids, which never are.

    So an organization with embedded records needs no look-up of its platform.
    """
    split = _Ids([], [])
    for record_id in record_ids:
        (split.embedded if ids.is_canonical(record_id) else split.remote).append(record_id)
    return split


def _remote_contacts(organization_id: str, contact_ids: Sequence[str]) -> dict[str, ContactRecord]:
    def load(keys: list[tuple[str, str]]) -> dict[tuple[str, str], ContactRecord]:
        connector = connector_of(organization_id)
        contacts = connector.get_contacts(
            [contact_id for _, contact_id in keys], deadline=Deadline.after(BUDGET_SECONDS)
        )
        return {(organization_id, contact_id): each for contact_id, each in contacts.items()}

    try:
        contacts = _contacts.get_many([(organization_id, each) for each in contact_ids], load)
    except PlatformError as error:
        raise _unavailable(organization_id, error) from error
    return {contact_id: each for (_, contact_id), each in contacts.items()}


def _unavailable(organization_id: str, error: PlatformError) -> errors.Unavailable:
    """Return the error for a failed platform: nothing was accepted, and the caller may retry."""
    name = type(error).__name__
    log.warning("platform.failed", organization_id=organization_id, error=name)
    wait = error.retry_after if isinstance(error, PlatformLimit) else 5
    return errors.Unavailable(
        gettext("The organization's platform does not answer."), headers={"Retry-After": str(wait)}
    )
