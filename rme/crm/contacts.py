"""Contacts and other records of an organization's platform, whichever that is."""

from collections.abc import Mapping, Sequence

import structlog

from rme.core import errors, ids
from rme.core.cache import TtlCache
from rme.crm import platforms
from rme.crm.connectors import REGISTRY
from rme.crm.connectors.base import Connector, Deadline, PlatformError, PlatformLimit
from rme.crm.connectors.embedded.connector import contacts_of_many
from rme.crm.connectors.records import ContactRecord, Record

log = structlog.get_logger(__name__)

CACHE_SECONDS = 60.0
BUDGET_SECONDS = 10.0
"""How long the platform may take for the recipients of one request or one window."""

_contacts: TtlCache[tuple[str, str], ContactRecord] = TtlCache(CACHE_SECONDS, size=20_000)


def connector_of(organization_id: str) -> Connector:
    """Give the connector of an organization's platform."""
    return REGISTRY[platforms.get(organization_id).kind](organization_id)


def get_contacts(
    organization_id: str,
    contact_ids: Sequence[str],
    known: Mapping[str, ContactRecord] | None = None,
) -> dict[str, ContactRecord]:
    """Find contacts of one organization by id; unknown ids are not in the answer.

    Those of a remote platform are kept for a minute. Raises Unavailable where it fails. `known` are
    those that are kept here, where they have been read already (`embedded_contacts`).
    """
    own, remote = _parted(contact_ids)
    if known is not None:
        found = dict(known)
    else:
        found = REGISTRY["embedded"](organization_id).get_contacts(own) if own else {}
    if remote and platforms.get(organization_id).kind != platforms.EMBEDDED:
        found |= _remote_contacts(organization_id, remote)
    return found


def embedded_contacts(wanted: Mapping[str, Sequence[str]]) -> dict[str, dict[str, ContactRecord]]:
    """Return, of each organization, the wanted contacts that are kept here; one query for all."""
    return contacts_of_many({each: _parted(given)[0] for each, given in wanted.items()})


def find_by_mobile(organization_id: str, numbers: Sequence[str]) -> dict[str, list[ContactRecord]]:
    """Find contacts of one organization by mobile number (E.164); several may share one."""
    if not numbers:
        return {}
    return connector_of(organization_id).find_by_mobile(numbers)


def get_records(organization_id: str, record_ids: Sequence[str]) -> dict[str, Record]:
    """Find records of one organization by id, of any kind; unknown ids are not in the answer.

    Raises Unavailable where a remote platform fails.
    """
    own, remote = _parted(record_ids)
    found = REGISTRY["embedded"](organization_id).get_records(own) if own else {}
    if remote and platforms.get(organization_id).kind != platforms.EMBEDDED:
        try:
            connector = connector_of(organization_id)
            found |= connector.get_records(remote, deadline=Deadline.after(BUDGET_SECONDS))
        except PlatformError as error:
            raise _unavailable(organization_id, error) from error
    return found


def _parted(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tell our own ids, which are UUIDs, from a platform's, which never are.

    So whoever keeps its records here pays no look-up of a platform.
    """
    own: list[str] = []
    remote: list[str] = []
    for each in given:
        (own if ids.is_canonical(each) else remote).append(each)
    return own, remote


def _remote_contacts(organization_id: str, wanted: Sequence[str]) -> dict[str, ContactRecord]:
    def load(missing: list[tuple[str, str]]) -> dict[tuple[str, str], ContactRecord]:
        connector = connector_of(organization_id)
        found = connector.get_contacts(
            [contact_id for _, contact_id in missing], deadline=Deadline.after(BUDGET_SECONDS)
        )
        return {(organization_id, contact_id): each for contact_id, each in found.items()}

    try:
        found = _contacts.get_many([(organization_id, each) for each in wanted], load)
    except PlatformError as error:
        raise _unavailable(organization_id, error) from error
    return {contact_id: each for (_, contact_id), each in found.items()}


def _unavailable(organization_id: str, error: PlatformError) -> errors.Unavailable:
    """Say to a caller that the platform fails: nothing was accepted, and it may try again."""
    name = type(error).__name__
    log.warning("platform.failed", organization_id=organization_id, error=name)
    wait = error.retry_after if isinstance(error, PlatformLimit) else 5
    return errors.Unavailable(
        "The organization's platform does not answer.", headers={"Retry-After": str(wait)}
    )
