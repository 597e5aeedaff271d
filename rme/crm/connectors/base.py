"""What a platform connector must be able to do: the one interface to an organization's records.

It gives and takes the plain values of `records`. A connector may match loosely where its platform
does (`rme.crm.lookups` checks each record again), and must never let a value change a query:
whatever is given is data.

`deadline` bounds a call as a whole, its retries included. Whatever a platform does, a call ends by
then, with its result or with one of the errors below; nothing else may leave a connector, and no
error carries the platform's own text.

    PlatformError
    ├── PlatformLimit      its quota is used up; `retry_after` in seconds
    ├── PlatformSlow       no answer by the deadline; a create may have been carried out
    ├── PlatformAway       it cannot be reached, or answers what cannot be read
    ├── PlatformRefused    it does not take our credentials
    ├── MappingWrong       it does not know an object or a field that the mapping names
    ├── Duplicate          it refused a create, because the record `id` is there already
    └── UnknownParent      it refused a create, because a record that it names does not exist
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


# --- how long it may take -----------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment by which a call must have ended, on this process's monotonic clock."""

    until: float = field(default=float("inf"))

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """Give the deadline that is some seconds away."""
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds that are left, never less than none."""
        return max(0.0, self.until - time.monotonic())

    def require(self) -> None:
        """Raise PlatformSlow where no time is left."""
        if self.left <= 0.0:
            raise PlatformSlow


NO_DEADLINE = Deadline()


# --- what goes wrong ----------------------------------------------------------------------------
class PlatformError(Exception):
    """A platform did not do what it was asked for."""


class PlatformLimit(PlatformError):
    """The platform's quota is used up."""

    def __init__(self, retry_after: int = 60) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after


class PlatformSlow(PlatformError):
    """No answer came by the deadline; whether a create was carried out is not known."""


class PlatformAway(PlatformError):
    """The platform cannot be reached, or answers what cannot be read."""


class PlatformRefused(PlatformError):
    """The platform does not take our credentials."""


class MappingWrong(PlatformError):
    """The platform does not know an object or a field that the mapping names."""


class Duplicate(PlatformError):
    """The platform has the record already. `id` is empty where it does not say which."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self.id = id


class UnknownParent(PlatformError):
    """The record that is named by `field` (`account_id`, `contact_id`) does not exist."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


# --- the interface ------------------------------------------------------------------------------
class Connector(ABC):
    """One organization's platform. Cheap to make: one for each call.

    All `find_*` give at least the `limit` best records that there are, the best first, and none
    where nothing matches, an id that the platform cannot have included; what matches loosely asks
    its platform for more, and the caller cuts. Emails arrive folded (`rme.core.addresses.email`),
    phones as E.164, other texts stripped and never empty.
    """

    def __init__(self, organization_id: str) -> None:
        self.organization_id = organization_id

    # --- by id, for any number of ids -----------------------------------------------------------
    @abstractmethod
    def get_contacts(
        self, contact_ids: Sequence[str], *, deadline: Deadline = NO_DEADLINE
    ) -> dict[str, ContactRecord]:
        """Find contacts by id. What does not exist is not in the answer.

        Set-based: one query or a few calls for any number of ids.
        """

    def find_by_mobile(self, numbers: Sequence[str]) -> dict[str, list[ContactRecord]]:
        """Find contacts by mobile number, as E.164; a platform that can asks once for all."""
        return {
            number: self.find_contacts_by_phone(number, limit=10, deadline=NO_DEADLINE)
            for number in numbers
        }

    @abstractmethod
    def get_records(
        self, record_ids: Sequence[str], *, deadline: Deadline = NO_DEADLINE
    ) -> dict[str, Record]:
        """Find records of any kind by id. What does not exist is not in the answer.

        Set-based, as above. `type` is one of Account, Contact, Case, Event, EventRegistration,
        Speaker, Exhibitor; a Contact has `account_id` (None or empty: it has none).
        """

    # --- look-ups -------------------------------------------------------------------------------
    @abstractmethod
    def find_contacts_by_email(
        self, email: str, *, limit: int, deadline: Deadline
    ) -> list[ContactRecord]:
        """Find contacts by their whole address, the newest first, however its case and its
        domain (IDN or not) are written.
        """

    @abstractmethod
    def find_contacts_by_phone(
        self, phone: str, *, limit: int, deadline: Deadline
    ) -> list[ContactRecord]:
        """Find contacts by any of their phones, the newest first."""

    @abstractmethod
    def find_accounts(self, name: str, *, limit: int, deadline: Deadline) -> list[AccountRecord]:
        """Find accounts by name: those written exactly so first, then those of the same
        `rme.crm.folding.account_name`.
        """

    @abstractmethod
    def find_cases(self, email: str, *, limit: int, deadline: Deadline) -> list[CaseRecord]:
        """Find the cases of the contacts with an address, the newest first."""

    @abstractmethod
    def find_registrations(
        self, email: str, *, limit: int, deadline: Deadline
    ) -> list[RegistrationRecord]:
        """Find the registrations of an address, its own or its contact's, the newest event
        first.
        """

    @abstractmethod
    def find_speakers(
        self, contact_id: str, event_id: str, *, limit: int, deadline: Deadline
    ) -> list[SpeakerRecord]:
        """Find where a contact speaks, the newest event first; at one event, if it is not empty."""

    @abstractmethod
    def find_exhibitors(
        self, contact_id: str, *, limit: int, deadline: Deadline
    ) -> list[ExhibitorRecord]:
        """Find where a contact exhibits, the newest event first."""

    # --- creates --------------------------------------------------------------------------------
    @abstractmethod
    def create(self, new: New, *, deadline: Deadline) -> str:
        """Make a record and give its id; never repeated by itself.

        Parents were looked at (`get_records`) and so were duplicates; both may still be refused
        by the platform: Duplicate, UnknownParent. After PlatformSlow it may exist.
        """

    @abstractmethod
    def find_created(self, new: New, *, since: datetime, deadline: Deadline) -> str:
        """Find a record of exactly these values made since a moment: after a create whose
        outcome is not known. Gives its id, empty where there is none.
        """
