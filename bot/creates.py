"""Creates, each of which makes one record however often and by however many it is asked for.

A lock for each organization, object and natural key (or, without one, for the values) is held
around the look-up and the create, whatever the platform. Each create begins with a look-up, so one
that is repeated because its outcome was not known finds what it made.
"""

from dataclasses import dataclass

from bot import idempotency
from bot.envelope import Failure
from bot.idempotency import CreateKey
from bot.policy import OnDuplicate, Policy
from rme.core.db import locks
from rme.crm import finding, folding
from rme.crm.connectors.base import (
    Connector,
    Deadline,
    Duplicate,
    PlatformError,
    PlatformSlow,
    UnknownParent,
)
from rme.crm.connectors.records import New, NewAccount, NewContact

PARENTS = {"account_id": "AccountID", "contact_id": "ContactID"}
"""The fields that name other records, by their names in the interface."""


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A create as it was asked for. `repeat_key` is the caller's Idempotency-Key, or empty."""

    new: New
    key_id: int
    repeat_key: str = ""


@dataclass(frozen=True, slots=True)
class CreateResult:
    """The record that is there now, and whether it was made just now."""

    id: str
    fresh: bool


def create(asked: CreateRequest, *, connector: Connector, policy: Policy, deadline: Deadline) -> CreateResult:
    """Make a record, or give the one that is there.

    Raises Failure (unknown_parent, duplicate) and PlatformError.
    """
    work = _Create(asked, connector, policy, deadline)
    work.check_parents()
    try:
        with locks.holding(work.lock_names(), deadline.until):
            return work.made_before() or work.existing() or work.make()
    except locks.Busy as error:
        raise PlatformSlow from error


def unknown_parent(field: str, why: str = "does not exist") -> Failure:
    """Make the refusal of a record that a create names."""
    name = PARENTS[field]
    return Failure(422, "unknown_parent", f"{name} {why}", field=name)


def natural_key(new: New) -> str:
    """Give by what records of a kind are told apart; empty where there is nothing."""
    match new:
        case NewAccount():
            return f"account {folding.account_name(new.name)}"
        case NewContact() if new.email:
            return f"contact {new.email}"
    return ""


class _Create:
    """One create, step by step."""

    def __init__(
        self, asked: CreateRequest, connector: Connector, policy: Policy, deadline: Deadline
    ) -> None:
        self.new, self.connector, self.deadline = asked.new, connector, deadline
        self.natural_key = natural_key(asked.new)
        self.on_duplicate = (
            policy.on_duplicate_account
            if isinstance(asked.new, NewAccount)
            else policy.on_duplicate_contact
        )
        self.token = self._token(asked)

    def _token(self, asked: CreateRequest) -> CreateKey | None:
        """Give by what the create is known again: the caller's key, or the values."""
        organization_id, kind = self.connector.organization_id, self.new.kind
        if asked.repeat_key:
            parts = (asked.key_id, kind, "key", asked.repeat_key)
            return CreateKey.of(organization_id, idempotency.KEY_LIFETIME, *parts)
        if not self.natural_key:
            parts = (asked.key_id, kind, "values", repr(self.new))
            return CreateKey.of(organization_id, idempotency.SAME_VALUES_LIFETIME, *parts)
        return None

    def lock_names(self) -> list[str]:
        names = [self.natural_key, self.token.digest if self.token else ""]
        return [f"bot create {self.connector.organization_id} {name}" for name in names if name]

    def check_parents(self) -> None:
        """Refuse parents that do not exist, and a contact of another account."""
        named = {field: getattr(self.new, field, "") for field in PARENTS}
        wanted = {field: identifier for field, identifier in named.items() if identifier}
        if not wanted:
            return
        found = self.connector.get_records(list(wanted.values()), deadline=self.deadline)
        for field, kind in (("account_id", "Account"), ("contact_id", "Contact")):
            if field in wanted and found.get(wanted[field], {}).get("type") != kind:
                raise unknown_parent(field)
        own = found[wanted["contact_id"]].get("account_id") if "contact_id" in wanted else None
        if own and own != wanted.get("account_id", own):
            raise unknown_parent("contact_id", "belongs to another account")

    def made_before(self) -> CreateResult | None:
        """Give what the same create made before, also if nobody heard of it."""
        known = idempotency.find(self.token) if self.token else None
        if self.token is None or known is None:
            return None
        identifier = known.record_id or self.connector.find_created(
            self.new, since=known.since, deadline=self.deadline
        )
        if identifier and not known.record_id:
            idempotency.store_result(self.token, identifier)
        return CreateResult(identifier, fresh=False) if identifier else None

    def existing(self) -> CreateResult | None:
        """Give the record with the same natural key. Raises Failure where that is refused."""
        if not self.natural_key or self.on_duplicate == OnDuplicate.ALLOW:
            return None
        found = self._look_up()
        return self._known(found) if found else None

    def _look_up(self) -> str:
        match self.new:
            case NewAccount(name=name):
                accounts = finding.accounts(self.connector, name, limit=1, deadline=self.deadline)
                return accounts[0].id if accounts else ""
            case NewContact(email=email) if email:
                contacts = finding.contacts_by_email(
                    self.connector, email, limit=1, deadline=self.deadline
                )
                return contacts[0].id if contacts else ""
        return ""

    def _known(self, identifier: str) -> CreateResult:
        if self.on_duplicate == OnDuplicate.RETURN_EXISTING and identifier:
            return CreateResult(identifier, fresh=False)
        raise Failure(
            409, "duplicate", f"The {self.new.kind} exists already", more={"id": identifier}
        )

    def make(self) -> CreateResult:
        """Have the platform make the record."""
        if self.token:
            idempotency.store_start(self.token)
        try:
            identifier = self.connector.create(self.new, deadline=self.deadline)
        except PlatformSlow:
            raise  # it may exist: the next one looks
        except PlatformError as error:
            if self.token:
                idempotency.forget(self.token)
            return self._refused(error)
        if self.token:
            idempotency.store_result(self.token, identifier)
        return CreateResult(identifier, fresh=True)

    def _refused(self, error: PlatformError) -> CreateResult:
        match error:
            case Duplicate(id=identifier):
                return self._known(identifier or self._look_up())
            case UnknownParent(field=field):
                raise unknown_parent(field) from error
        raise error
