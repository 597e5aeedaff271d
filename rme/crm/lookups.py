"""Look-ups on any platform. Each record is checked again, since platforms match loosely."""

from rme.core import addresses
from rme.crm import folding
from rme.crm.connectors.base import Connector, Deadline
from rme.crm.connectors.records import AccountRecord, CaseRecord, ContactRecord, RegistrationRecord


def contacts_by_email(
    connector: Connector, email: str, *, limit: int, deadline: Deadline
) -> list[ContactRecord]:
    """Return the contacts with a folded address. Raise PlatformError."""
    records = connector.find_contacts_by_email(email, limit=limit, deadline=deadline)
    return [record for record in records if addresses.email(record.email) == email][:limit]


def contacts_by_phone(
    connector: Connector, phone: str, *, region: str, limit: int, deadline: Deadline
) -> list[ContactRecord]:
    """Return the contacts with a number; `region` is assumed without a country code.

    Ambiguous digits are looked up first as the region's number, then as the other one.
    """
    for number in addresses.phone_readings(phone, region):
        records = connector.find_contacts_by_phone(number, limit=limit, deadline=deadline)
        matching = [record for record in records if _has_phone(record, number, region)]
        if matching:
            return matching[:limit]
    return []


def _has_phone(record: ContactRecord, number: str, region: str) -> bool:
    numbers = (number,)
    return any(
        addresses.same_phones(numbers, addresses.phone_readings(each, region))
        for each in record.phones
    )


def accounts(
    connector: Connector, name: str, *, limit: int, deadline: Deadline
) -> list[AccountRecord]:
    """Return the accounts with the same folded name, exact matches first."""
    folded = folding.account_name(name)
    records = connector.find_accounts(name, limit=limit, deadline=deadline)
    namesakes = [record for record in records if folding.account_name(record.name) == folded]
    return sorted(namesakes, key=lambda record: record.name != name)[:limit]


def cases(connector: Connector, email: str, *, limit: int, deadline: Deadline) -> list[CaseRecord]:
    """Return the cases of the contacts with a folded address."""
    records = connector.find_cases(email, limit=limit, deadline=deadline)
    return [record for record in records if addresses.email(record.contact_email) == email][:limit]


def registrations(
    connector: Connector, email: str, *, limit: int, deadline: Deadline
) -> list[RegistrationRecord]:
    """Return the registrations whose own or whose contact's folded address this is."""
    records = connector.find_registrations(email, limit=limit, deadline=deadline)
    return [
        record
        for record in records
        if email in (addresses.email(record.email), addresses.email(record.contact_email))
    ][:limit]
