"""Records as values, as platform connectors return and create them.

Ids are the platform's own, opaque; a missing value is an empty string; times are zone-aware.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

Record = Mapping[str, Any]
"""A record of any kind: its fields by name as JSON values, not nested. `type` is its kind."""


# --- records that exist -------------------------------------------------------------------------
class ContactRecord(NamedTuple):
    """A person. Missing values are empty strings.

    `email` is as typed; `mobile` is E.164; `language` like `en_GB`; `zone` an IANA name.
    `phone` is the number to display; `phones` are all numbers, `mobile` included, each as the
    platform stores it. Only `find_contacts_by_*` fill the last four.
    """

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    mobile: str = ""
    language: str = ""
    zone: str = ""
    phone: str = ""
    phones: tuple[str, ...] = ()
    account_id: str = ""
    account_name: str = ""

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()


@dataclass(frozen=True, slots=True)
class AccountRecord:
    """A company or household."""

    id: str
    name: str
    phone: str = ""
    website: str = ""


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """A support request. `contact_email` is its contact's."""

    id: str
    number: str = ""
    subject: str = ""
    issue: str = ""
    status: str = ""
    priority: str = ""
    is_closed: bool = False
    created_at: datetime | None = None
    contact_id: str = ""
    contact_email: str = ""
    account_id: str = ""


@dataclass(frozen=True, slots=True)
class RegistrationRecord:
    """One person's registration for an event. `is_registered` is false for a cancelled one.

    `email` is the registration's own, `contact_email` its contact's.
    """

    id: str
    event_id: str = ""
    event_name: str = ""
    event_start: datetime | None = None
    contact_id: str = ""
    name: str = ""
    email: str = ""
    status: str = ""
    is_registered: bool = False
    attended: bool = False
    ticket_type: str = ""
    registered_at: datetime | None = None
    contact_email: str = ""

    @property
    def any_email(self) -> str:
        return self.email or self.contact_email


@dataclass(frozen=True, slots=True)
class SpeakerRecord:
    """A contact who speaks at an event."""

    id: str
    event_id: str = ""
    event_name: str = ""
    contact_id: str = ""
    name: str = ""
    email: str = ""
    session_title: str = ""
    session_start: datetime | None = None
    room: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class ExhibitorRecord:
    """An account with a booth at an event, and its contact there."""

    id: str
    event_id: str = ""
    event_name: str = ""
    account_id: str = ""
    account_name: str = ""
    contact_id: str = ""
    booth: str = ""
    level: str = ""
    status: str = ""


# --- records to create --------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account to create."""

    kind: ClassVar[str] = "Account"
    name: str


@dataclass(frozen=True, slots=True)
class NewContact:
    """A contact to create. `email` is folded (`rme.core.addresses.email`) or empty."""

    kind: ClassVar[str] = "Contact"
    last_name: str
    first_name: str = ""
    email: str = ""
    account_id: str = ""


@dataclass(frozen=True, slots=True)
class NewCase:
    """A case to create."""

    kind: ClassVar[str] = "Case"
    subject: str
    issue: str
    contact_id: str = ""
    account_id: str = ""


New = NewAccount | NewContact | NewCase
