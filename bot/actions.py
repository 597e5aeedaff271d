"""The table of actions: name, parameters and the function that carries it out.

This is the only place that lists the actions of the bot API.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bot import records
from bot.schemas import Parameter, ParameterKind
from rme.crm import lookups
from rme.crm.connectors.base import Connector, Deadline
from rme.crm.connectors.records import New, NewAccount, NewCase, NewContact

ISSUE_LIMIT = 32_000

Values = Mapping[str, str]
"""The parameters of a call by their names in the API."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a look-up needs: return at most `limit` records, before the deadline.

    `region` is an ISO 3166 country code, for phone numbers without a country code.
    """

    connector: Connector
    region: str
    limit: int
    deadline: Deadline

    @property
    def bounds(self) -> dict[str, Any]:
        return {"limit": self.limit, "deadline": self.deadline}


@dataclass(frozen=True, slots=True)
class Confirm:
    """A look-up. `find` returns records in the API's form, best match first."""

    parameters: tuple[Parameter, ...]
    find: Callable[[Search, Values], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Create:
    """A create. `new` builds the record to create from the parameters."""

    parameters: tuple[Parameter, ...]
    new: Callable[[Values], New]


# --- look-ups -----------------------------------------------------------------------------------
def _contacts_by_email(search: Search, values: Values) -> list[dict[str, Any]]:
    found = lookups.contacts_by_email(search.connector, values["email"], **search.bounds)
    return [records.contact(each) for each in found]


def _contacts_by_phone(search: Search, values: Values) -> list[dict[str, Any]]:
    found = lookups.contacts_by_phone(
        search.connector, values["phone"], region=search.region, **search.bounds
    )
    return [records.contact(each) for each in found]


def _cases(search: Search, values: Values) -> list[dict[str, Any]]:
    found = lookups.cases(search.connector, values["email"], **search.bounds)
    return [records.case(each) for each in found]


def _registrations(search: Search, values: Values) -> list[dict[str, Any]]:
    found = lookups.registrations(search.connector, values["email"], **search.bounds)
    return [records.registration(each) for each in found]


def _speakers(search: Search, values: Values) -> list[dict[str, Any]]:
    found = search.connector.find_speakers(values["contactID"], values["eventID"], **search.bounds)
    return [records.speaker(each) for each in found[: search.limit]]


def _exhibitors(search: Search, values: Values) -> list[dict[str, Any]]:
    found = search.connector.find_exhibitors(values["contactID"], **search.bounds)
    return [records.exhibitor(each) for each in found[: search.limit]]


def _accounts(search: Search, values: Values) -> list[dict[str, Any]]:
    name = values["accountName"]
    return [
        records.account(each, name)
        for each in lookups.accounts(search.connector, name, **search.bounds)
    ]


# --- creates ------------------------------------------------------------------------------------
def _new_account(values: Values) -> New:
    return NewAccount(name=values["accountName"])


def _new_contact(values: Values) -> New:
    return NewContact(
        last_name=values["lastName"],
        first_name=values["firstName"],
        email=values["email"],
        account_id=values["AccountID"],
    )


def _new_case(values: Values) -> New:
    return NewCase(
        subject=values["Subject"],
        issue=values["Issue"],
        contact_id=values["ContactID"],
        account_id=values["AccountID"],
    )


# --- the table ----------------------------------------------------------------------------------
EMAIL = Parameter("email", ParameterKind.EMAIL)
ACCOUNT_NAME = Parameter("accountName")
CONTACT_ID = Parameter("contactID")

CONFIRM: Mapping[str, Confirm] = {
    "Confirm_Contact": Confirm((EMAIL,), _contacts_by_email),
    "Confirm_Contact_Phone": Confirm(
        (Parameter("phone", ParameterKind.PHONE),), _contacts_by_phone
    ),
    "Confirm_Case": Confirm((EMAIL,), _cases),
    "Confirm_Registration": Confirm((EMAIL,), _registrations),
    "Confirm_Speaker": Confirm((CONTACT_ID, Parameter("eventID", required=False)), _speakers),
    "Confirm_Exhibitor": Confirm((CONTACT_ID,), _exhibitors),
    "Confirm_Account": Confirm((ACCOUNT_NAME,), _accounts),
}
CREATE: Mapping[str, Create] = {
    "Create_Account": Create((ACCOUNT_NAME,), _new_account),
    "Create_Contact": Create(
        (
            Parameter("lastName"),
            Parameter("firstName", required=False),
            Parameter("email", ParameterKind.EMAIL, required=False),
            Parameter("AccountID", required=False),
        ),
        _new_contact,
    ),
    "Create_Case": Create(
        (
            Parameter("Subject"),
            Parameter("Issue", limit=ISSUE_LIMIT),
            Parameter("ContactID", required=False),
            Parameter("AccountID", required=False),
        ),
        _new_case,
    ),
}
ALL = (*CONFIRM, *CREATE)
