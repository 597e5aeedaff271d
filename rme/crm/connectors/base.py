"""The interface that every platform connector implements: one organization's records.

Records are the plain values of `records`. A connector may match loosely where its platform does
(`rme.crm.lookups` checks each record again). Values are data: they must never change a query.

`deadline` bounds a whole call, retries included. A call ends by then with its result or with one of
the errors below. A connector raises no other error, and no error carries the platform's own text.

    PlatformError
    ├── PlatformLimit      the quota is used up; `retry_after` in seconds
    ├── PlatformSlow       no response by the deadline; a create may have been carried out
    ├── PlatformAway       it cannot be reached, or its response cannot be read
    ├── PlatformRefused    it rejects our credentials
    ├── MappingWrong       the mapping names an object or a field that it does not have
    ├── Duplicate          it rejected a create: the record `id` exists already
    └── UnknownParent      it rejected a create: a record that it refers to does not exist
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rme.crm.connectors.records import (
    AccountRecord,
    CaseRecord,
    ContactRecord,
    ExhibitorRecord,
    New,
    Record,
    RegistrationRecord,
    SpeakerRecord,
)


# --- deadlines ----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Deadline:
    """The time by which a call must end, on this process's monotonic clock."""

    until: float = field(default=float("inf"))

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """Return a deadline some seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Return the seconds that remain, at least 0."""
        return max(0.0, self.until - time.monotonic())

    def require(self) -> None:
        """Raise PlatformSlow if no time remains."""
        if self.left <= 0.0:
            raise PlatformSlow


NO_DEADLINE = Deadline()


# --- errors -------------------------------------------------------------------------------------
class PlatformError(Exception):
    """A platform did not carry out a call."""


class PlatformLimit(PlatformError):
    """The platform's quota is used up; `retry_after` is in seconds."""

    def __init__(self, retry_after: int = 60) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after


class PlatformSlow(PlatformError):
    """No response arrived by the deadline; a create may have been carried out."""


class PlatformAway(PlatformError):
    """The platform cannot be reached, or its response cannot be read."""


class PlatformRefused(PlatformError):
    """The platform rejects our credentials."""


class MappingWrong(PlatformError):
    """The mapping names an object or a field that the platform does not have."""


class Duplicate(PlatformError):
    """The record exists already. `id` is empty if the platform does not name it."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id


class UnknownParent(PlatformError):
    """The record that `field` (`account_id` or `contact_id`) refers to does not exist."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


# --- the interface ------------------------------------------------------------------------------
class Connector(ABC):
    """One organization's platform. Cheap to build: one for each call.

    All `find_*` return at least the `limit` best records, the best first; an empty list if nothing
    matches, also for an id that the platform cannot have. A connector that matches loosely may
    return more, and the caller cuts the list. Emails are folded (`rme.core.addresses.email`),
    phones are E.164, other texts are stripped and not empty.
    """

    def __init__(self, organization_id: str) -> None:
        self.organization_id = organization_id

    # --- by id, for any number of ids -----------------------------------------------------------
    @abstractmethod
    def get_contacts(
        self, contact_ids: Sequence[str], *, deadline: Deadline = NO_DEADLINE
    ) -> dict[str, ContactRecord]:
        """Return contacts by id; unknown ids are missing from the result.

        Set-based: one query or a few calls for any number of ids.
        """

    def find_by_mobile(self, numbers: Sequence[str]) -> dict[str, list[ContactRecord]]:
        """Return contacts by mobile number (E.164). A connector may use one query for all."""
        return {
            number: self.find_contacts_by_phone(number, limit=10, deadline=NO_DEADLINE)
            for number in numbers
        }

    @abstractmethod
    def get_records(
        self, record_ids: Sequence[str], *, deadline: Deadline = NO_DEADLINE
    ) -> dict[str, Record]:
        """Return records of any kind by id; unknown ids are missing from the result.

        Set-based, as above. `type` is one of Account, Contact, Case, Event, EventRegistration,
        Speaker, Exhibitor; a Contact has `account_id` (None or empty: no account).
        """

    # --- look-ups -------------------------------------------------------------------------------
    @abstractmethod
    def find_contacts_by_email(
        self, email: str, *, limit: int, deadline: Deadline
    ) -> list[ContactRecord]:
        """Return contacts with exactly this address, the newest first. Case and the spelling of
        the domain (IDN or not) do not count.
        """

    @abstractmethod
    def find_contacts_by_phone(
        self, phone: str, *, limit: int, deadline: Deadline
    ) -> list[ContactRecord]:
        """Return contacts with this number among their phones, the newest first."""

    @abstractmethod
    def find_accounts(self, name: str, *, limit: int, deadline: Deadline) -> list[AccountRecord]:
        """Return accounts by name: exact matches first, then those with the same
        `rme.crm.folding.account_name`.
        """

    @abstractmethod
    def find_cases(self, email: str, *, limit: int, deadline: Deadline) -> list[CaseRecord]:
        """Return the cases of the contacts with this address, the newest first."""

    @abstractmethod
    def find_registrations(
        self, email: str, *, limit: int, deadline: Deadline
    ) -> list[RegistrationRecord]:
        """Return the registrations whose own or whose contact's address this is, the newest
        event first.
        """

    @abstractmethod
    def find_speakers(
        self, contact_id: str, event_id: str, *, limit: int, deadline: Deadline
    ) -> list[SpeakerRecord]:
        """Return a contact's sessions, the newest event first; of one event unless it is empty."""

    @abstractmethod
    def find_exhibitors(
        self, contact_id: str, *, limit: int, deadline: Deadline
    ) -> list[ExhibitorRecord]:
        """Return the booths of a contact, the newest event first."""

    # --- creates --------------------------------------------------------------------------------
    @abstractmethod
    def create(self, new: New, *, deadline: Deadline) -> str:
        """Create a record and return its id. Never retried.

        The caller has checked parents (`get_records`) and duplicates; the platform may still
        reject either: raise Duplicate or UnknownParent. After PlatformSlow the record may exist.
        """

    @abstractmethod
    def find_created(self, new: New, *, since: datetime, deadline: Deadline) -> str:
        """Return the id of a record with exactly these values created since a time, or "".

        For a create whose outcome is unknown.
        """
