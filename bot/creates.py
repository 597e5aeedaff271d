"""Creates are idempotent: repeated or concurrent requests create one record.

A lock per organization, object and natural key (or, without one, per set of values) is held around
the look-up and the create, on every platform. Each create starts with a look-up, so a repeat after
an unknown outcome finds the record that the first request created.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

from bot import idempotency
from bot.envelope import BotFailure
from bot.idempotency import CreateKey
from bot.policy import BotPolicy, OnDuplicate
from rme.core.db import locks
from rme.crm import folding, lookups
from rme.crm.connectors.base import (
    Connector,
    Deadline,
    Duplicate,
    PlatformError,
    PlatformSlow,
    UnknownParent,
)
from rme.crm.connectors.records import New, NewAccount, NewContact, Record

PARENTS = {"account_id": "AccountID", "contact_id": "ContactID"}
"""Fields that reference other records, and their names in the API."""
PARENT_KINDS = {"account_id": "Account", "contact_id": "Contact"}


class ParentRecord(NamedTuple):
    """A record that a new one references: its kind, and its account's id. Empty where unknown."""

    kind: str
    account_id: str

    @classmethod
    def of(cls, record: Record | None) -> Self:
        fields = record or {}
        return cls(fields.get("type") or "", fields.get("account_id") or "")


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A create as the caller requested it.

    `key_id` identifies the API key; `idempotency_key` is the header's value, or empty.
    """

    new: New
    key_id: int
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True)
class CreateResult:
    """The id of the record, and whether this request created it."""

    id: str
    created: bool


def create(
    request: CreateRequest, *, connector: Connector, policy: BotPolicy, deadline: Deadline
) -> CreateResult:
    """Create a record, or return the one that exists.

    Raise BotFailure (unknown_parent, duplicate) or PlatformError.
    """
    step = _Create(request, connector, policy, deadline)
    step.check_parents()
    try:
        with locks.holding(step.lock_names(), deadline.until):
            return step.created_before() or step.existing() or step.create()
    except locks.Busy as error:
        raise PlatformSlow from error


def unknown_parent(field: str, reason: str = "does not exist") -> BotFailure:
    """Return the failure for a reference to another record."""
    name = PARENTS[field]
    return BotFailure(422, "unknown_parent", f"{name} {reason}", field=name)


def natural_key(new: New) -> str:
    """Return what identifies a record apart from its id; empty if nothing does."""
    match new:
        case NewAccount():
            return f"account {folding.account_name(new.name)}"
        case NewContact() if new.email:
            return f"contact {new.email}"
    return ""


class _Create:
    """One create, step by step."""

    def __init__(
        self, request: CreateRequest, connector: Connector, policy: BotPolicy, deadline: Deadline
    ) -> None:
        self.new, self.connector, self.deadline = request.new, connector, deadline
        self.natural_key = natural_key(request.new)
        self.on_duplicate = (
            policy.on_duplicate_account
            if isinstance(request.new, NewAccount)
            else policy.on_duplicate_contact
        )
        self.create_key = self._create_key(request)

    def _create_key(self, request: CreateRequest) -> CreateKey | None:
        """Return the key that identifies repeats: the caller's, or one made of the values."""
        organization_id, kind = self.connector.organization_id, self.new.kind
        if request.idempotency_key:
            parts = (request.key_id, kind, "key", request.idempotency_key)
            return CreateKey.of(organization_id, idempotency.KEY_LIFETIME, *parts)
        if not self.natural_key:
            parts = (request.key_id, kind, "values", repr(self.new))
            return CreateKey.of(organization_id, idempotency.SAME_VALUES_LIFETIME, *parts)
        return None

    def lock_names(self) -> list[str]:
        names = [self.natural_key, self.create_key.digest if self.create_key else ""]
        return [f"bot create {self.connector.organization_id} {name}" for name in names if name]

    def check_parents(self) -> None:
        """Raise BotFailure if a parent is not there, or the contact belongs to another account."""
        values = {field: getattr(self.new, field, "") for field in PARENTS}
        parent_ids = {field: identifier for field, identifier in values.items() if identifier}
        if not parent_ids:
            return
        records = self.connector.get_records(list(parent_ids.values()), deadline=self.deadline)
        parents = {
            field: ParentRecord.of(records.get(identifier))
            for field, identifier in parent_ids.items()
        }
        for field, parent in parents.items():
            if parent.kind != PARENT_KINDS[field]:
                raise unknown_parent(field)
        account_id = parents["contact_id"].account_id if "contact_id" in parents else ""
        if account_id and account_id != parent_ids.get("account_id", account_id):
            raise unknown_parent("contact_id", "belongs to another account")

    def created_before(self) -> CreateResult | None:
        """Return what an earlier, identical request created, even if its response was lost."""
        earlier = idempotency.find(self.create_key) if self.create_key else None
        if self.create_key is None or earlier is None:
            return None
        identifier = earlier.record_id or self.connector.find_created(
            self.new, since=earlier.since, deadline=self.deadline
        )
        if identifier and not earlier.record_id:
            idempotency.store_result(self.create_key, identifier)
        return CreateResult(identifier, created=False) if identifier else None

    def existing(self) -> CreateResult | None:
        """Return the record of the same natural key. Raise BotFailure if the policy refuses it."""
        if not self.natural_key or self.on_duplicate == OnDuplicate.ALLOW:
            return None
        record = self._look_up()
        return self._duplicate(record) if record else None

    def _look_up(self) -> str:
        match self.new:
            case NewAccount(name=name):
                accounts = lookups.accounts(self.connector, name, limit=1, deadline=self.deadline)
                return accounts[0].id if accounts else ""
            case NewContact(email=email) if email:
                contacts = lookups.contacts_by_email(
                    self.connector, email, limit=1, deadline=self.deadline
                )
                return contacts[0].id if contacts else ""
        return ""

    def _duplicate(self, identifier: str) -> CreateResult:
        if self.on_duplicate == OnDuplicate.RETURN_EXISTING and identifier:
            return CreateResult(identifier, created=False)
        raise BotFailure(
            409, "duplicate", f"The {self.new.kind} exists already", more={"id": identifier}
        )

    def create(self) -> CreateResult:
        """Create the record on the platform."""
        if self.create_key:
            idempotency.store_start(self.create_key)
        try:
            identifier = self.connector.create(self.new, deadline=self.deadline)
        except PlatformSlow:
            raise  # the record may exist: the next request looks it up
        except PlatformError as error:
            if self.create_key:
                idempotency.forget(self.create_key)
            return self._refused(error)
        if self.create_key:
            idempotency.store_result(self.create_key, identifier)
        return CreateResult(identifier, created=True)

    def _refused(self, error: PlatformError) -> CreateResult:
        match error:
            case Duplicate(id=identifier):
                return self._duplicate(identifier or self._look_up())
            case UnknownParent(field=field):
                raise unknown_parent(field) from error
        raise error
