"""The table of actions: name, parameters and the function that carries it out.

This is the only place that lists the actions of the bot API.
"""

from collections.abc import Callable, Mapping, Sequence
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
class RecordSearch:
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
    """A look-up. `find` returns records, best match first; `extend` adds keys to what is shown."""

    parameters: tuple[Parameter, ...]
    find: Callable[[RecordSearch, Values], Sequence[object]]
    extend: Callable[[dict[str, Any], Values], dict[str, Any]] = lambda shown, _: shown

    def records(self, search: RecordSearch, values: Values) -> list[dict[str, Any]]:
        """Return the records in the API's form."""
        matches = self.find(search, values)[: search.limit]
        return [self.extend(records.shown(each), values) for each in matches]


@dataclass(frozen=True, slots=True)
class Create:
    """A create. `new` builds the record to create from the parameters."""

    parameters: tuple[Parameter, ...]
    new: Callable[[Values], New]


# --- look-ups -----------------------------------------------------------------------------------
Found = Sequence[object]


def _contacts_by_email(search: RecordSearch, values: Values) -> Found:
    return lookups.contacts_by_email(search.connector, values["email"], **search.bounds)


def _contacts_by_phone(search: RecordSearch, values: Values) -> Found:
    phone, region = values["phone"], search.region
    return lookups.contacts_by_phone(search.connector, phone, region=region, **search.bounds)


def _cases(search: RecordSearch, values: Values) -> Found:
    return lookups.cases(search.connector, values["email"], **search.bounds)


def _registrations(search: RecordSearch, values: Values) -> Found:
    return lookups.registrations(search.connector, values["email"], **search.bounds)


def _speakers(search: RecordSearch, values: Values) -> Found:
    return search.connector.find_speakers(values["contactID"], values["eventID"], **search.bounds)


def _exhibitors(search: RecordSearch, values: Values) -> Found:
    return search.connector.find_exhibitors(values["contactID"], **search.bounds)


def _accounts(search: RecordSearch, values: Values) -> Found:
    return lookups.accounts(search.connector, values["accountName"], **search.bounds)


def _match_type(record: dict[str, Any], values: Values) -> dict[str, Any]:
    """Add whether the account has exactly the name that was looked up."""
    exact = record["accountName"] == values["accountName"]
    return {**record, "matchType": "exact" if exact else "folded"}


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
    "Confirm_Account": Confirm((ACCOUNT_NAME,), _accounts, _match_type),
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
