"""Look-ups on any platform. Each record is checked again, since platforms match loosely."""

from rme.core import addresses
from rme.crm import folding
from rme.crm.connectors.base import Connector, Deadline
from rme.crm.connectors.records import AccountRecord, CaseRecord, ContactRecord, RegistrationRecord


def contacts_by_email(
    connector: Connector, email: str, *, limit: int, deadline: Deadline
) -> list[ContactRecord]:
    """Return the contacts with a folded address. Raise PlatformError."""
    found = connector.find_contacts_by_email(email, limit=limit, deadline=deadline)
    return [record for record in found if addresses.email(record.email) == email][:limit]


def contacts_by_phone(
    connector: Connector, phone: str, *, region: str, limit: int, deadline: Deadline
) -> list[ContactRecord]:
    """Return the contacts with an E.164 number; `region` is assumed without a country code."""
    found = connector.find_contacts_by_phone(phone, limit=limit, deadline=deadline)
    return [
        record
        for record in found
        if any(addresses.phone(each, region) == phone for each in record.phones)
    ][:limit]


def accounts(
    connector: Connector, name: str, *, limit: int, deadline: Deadline
) -> list[AccountRecord]:
    """Return the accounts with the same folded name, exact matches first."""
    folded = folding.account_name(name)
    found = connector.find_accounts(name, limit=limit, deadline=deadline)
    same = [record for record in found if folding.account_name(record.name) == folded]
    return sorted(same, key=lambda record: record.name != name)[:limit]


def cases(connector: Connector, email: str, *, limit: int, deadline: Deadline) -> list[CaseRecord]:
    """Return the cases of the contacts with a folded address."""
    found = connector.find_cases(email, limit=limit, deadline=deadline)
    return [record for record in found if addresses.email(record.contact_email) == email][:limit]


def registrations(
    connector: Connector, email: str, *, limit: int, deadline: Deadline
) -> list[RegistrationRecord]:
    """Return the registrations whose own or whose contact's folded address this is."""
    found = connector.find_registrations(email, limit=limit, deadline=deadline)
    return [
        record
        for record in found
        if email in (addresses.email(record.email), addresses.email(record.contact_email))
    ][:limit]
