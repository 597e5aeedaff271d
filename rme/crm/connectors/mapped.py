"""Look-ups and creates on remote platforms, by the organization's mapping.

A subclass for each platform selects, inserts and describes; the rest is here. Rows are checked
before the list is cut to the limit, since platforms match loosely.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, field_validator

from rme.core import addresses
from rme.core.provider.credentials import DESTINATION, CaPem
from rme.crm import folding, mapping, platforms
from rme.crm.connectors import circuit, rows
from rme.crm.connectors.base import NO_DEADLINE, Connector, Deadline, MappingWrong, UnknownParent
from rme.crm.connectors.conditions import Description, Where, loose_pattern, pattern
from rme.crm.connectors.platform_calls import PlatformCaller
from rme.crm.connectors.records import (
    AccountRecord,
    CaseRecord,
    ContactRecord,
    ExhibitorRecord,
    New,
    NewAccount,
    NewCase,
    NewContact,
    Record,
    RegistrationRecord,
    SpeakerRecord,
)
from rme.crm.connectors.values import Row, Values
from rme.crm.mapping import ObjectMapping, Scalar
from rme.transport.addresses import origin_of
from rme.transport.performer import Performer

SCAN = 200
"""Rows that a look-up reads to find the few that match exactly."""
LOOSE_SCAN = 2000
"""Rows that a look-up by a loose pattern reads."""
_KINDS = ("Account", "Contact", "Case", "Event", "EventRegistration", "Speaker", "Exhibitor")
"""Kinds in the order in which an id is looked up."""
_PARENTS = ("account_id", "contact_id")


class RemoteSettings(BaseModel):
    """The platform's address, and the certificate authorities to trust for it."""

    model_config = ConfigDict(extra="forbid")

    address: Annotated[str, DESTINATION]
    ca_pem: CaPem = ""

    @field_validator("address")
    @classmethod
    def _is_address(cls, address: str) -> str:
        origin = origin_of(address)
        if origin is None or not origin.scheme.startswith("http"):
            raise ValueError(_("an address like https://acme.example"))
        if "/" in address.split("//", 1)[1].rstrip("/") or {"?", "#"} & set(address):
            raise ValueError(_("an address without a path"))
        return address.rstrip("/")


class MappedConnector(Connector):
    """A connector for one organization's remote platform."""

    Settings: ClassVar[type[RemoteSettings]]
    """The platform's settings; secrets are SecretStr."""
    label: ClassVar[str]
    """The platform's name in the admin."""
    id_path: ClassVar[str]
    """The platform's field for the id of a record."""
    created_path: ClassVar[str]
    """The platform's field for the time at which a record was created."""
    batch: ClassVar[int]
    """How many ids one call takes."""

    def __init__(
        self,
        organization_id: str,
        *,
        transport: Performer,
        platform: platforms.PlatformRecord | None = None,
    ) -> None:
        super().__init__(organization_id)
        self.platform = platform or platforms.get(organization_id)
        ca_pem = str(self.platform.settings.get("ca_pem", ""))
        # A platform passed in is being tested: failures of earlier calls do not count.
        address = str(self.platform.settings.get("address", ""))
        breaker = circuit.circuit_of(organization_id, address) if platform is None else None
        self.caller = PlatformCaller(transport, ca_pem, breaker)

    # --- what a subclass implements -------------------------------------------------------------
    @abstractmethod
    def _describe_object(self, name: str) -> Mapping[str, str]:
        """Return the fields of an object, and the object that each refers to ("" if none).

        Raise PlatformError; MappingWrong if the object is unknown.
        """

    @abstractmethod
    def _select(
        self,
        kind: str,
        conditions: Sequence[Where],
        *,
        newest: str = "created_at",
        limit: int = SCAN,
    ) -> list[Row]:
        """Return rows that meet all conditions and the kind's filter, by one call or a few.

        They are ordered by the field `newest`, latest first; "" orders them by name.
        """

    @abstractmethod
    def _insert(self, kind: str, row: dict[str, Scalar], new: New) -> str:
        """Create a record from the platform's own fields, and return its id."""

    @abstractmethod
    def _select_by_phone(self, phone: str) -> list[Row]:
        """Return rows of contacts that may have a phone number (E.164)."""

    @abstractmethod
    def _key(self, record_id: str) -> str:
        """Return the platform's form of a record's id, or "" if it cannot be an id."""

    @abstractmethod
    def _may_be(self, kind: str, record_id: str) -> bool:
        """Return whether an id may belong to a record of a kind."""

    def describe(self, objects: Iterable[str], *, deadline: Deadline) -> Description:
        """Return the platform's own description of objects. Raise PlatformError."""
        self.caller.deadline = deadline
        described: dict[str, Mapping[str, str] | None] = {}
        for name in dict.fromkeys(objects):
            try:
                described[name] = self._describe_object(name)
            except MappingWrong:
                described[name] = None
        return described

    # --- by id ----------------------------------------------------------------------------------
    def get_contacts(
        self, contact_ids: Sequence[str], *, deadline: Deadline = NO_DEADLINE
    ) -> dict[str, ContactRecord]:
        self.caller.deadline = deadline
        # Consent and suppressions store the id as given, so only one spelling is accepted.
        keys = [each for each in contact_ids if self._key(each) == each]
        contacts = [self._contact(row) for row in self._by_keys("Contact", keys)]
        requested = set(keys)
        return {each.id: each for each in contacts if each.id in requested}

    def get_records(
        self, record_ids: Sequence[str], *, deadline: Deadline = NO_DEADLINE
    ) -> dict[str, Record]:
        self.caller.deadline = deadline
        records: dict[str, Record] = {}
        for kind in _KINDS:
            remaining = [each for each in record_ids if each not in records]
            records |= self._records(kind, [each for each in remaining if self._may_be(kind, each)])
        return records

    def _records(self, kind: str, record_ids: Sequence[str]) -> dict[str, Record]:
        if not record_ids or not self._has(kind):
            return {}
        mapped = self._mapped(kind)
        keys = {each: self._key(each) for each in record_ids}
        read = self._by_keys(kind, list(dict.fromkeys(keys.values())))
        records = [rows.record(kind, Values(mapped, row)) for row in read]
        by_key = {record["id"]: record for record in records}
        return {each: by_key[key] for each, key in keys.items() if key in by_key}

    def _by_keys(self, kind: str, keys: Sequence[str]) -> list[Row]:
        read: list[Row] = []
        for start in range(0, len(keys), self.batch):
            part = tuple(keys[start : start + self.batch])
            condition = Where((self.id_path,), equals=part, keys=True)
            read += self._select(kind, [condition], limit=self.batch)
        return read

    # --- look-ups -------------------------------------------------------------------------------
    def find_contacts_by_email(
        self, email: str, *, limit: int, deadline: Deadline
    ) -> list[ContactRecord]:
        read = self._found("Contact", "email", addresses.spellings(email), deadline, fold=True)
        contacts = [self._contact(row) for row in read]
        return [each for each in contacts if addresses.email(each.email) == email][:limit]

    def find_contacts_by_phone(
        self, phone: str, *, limit: int, deadline: Deadline
    ) -> list[ContactRecord]:
        self.caller.deadline = deadline
        contacts = [self._contact(row) for row in self._select_by_phone(phone)]
        return [each for each in contacts if self._has_phone(each, phone)][:limit]

    def find_accounts(self, name: str, *, limit: int, deadline: Deadline) -> list[AccountRecord]:
        self.caller.deadline = deadline
        folded = folding.account_name(name)
        paths = self._mapped("Account").search_paths("name")
        wheres = [(Where(paths, equals=(name,), like=pattern(folded)), SCAN)]
        if loose := loose_pattern(folded):
            wheres.append((Where(paths, like=loose), LOOSE_SCAN))
        for condition, scan in wheres:
            read = self._select("Account", [condition], newest="", limit=scan)
            values = [self._values("Account", row) for row in read]
            accounts = [rows.record_of(AccountRecord, account) for account in values]
            if namesakes := [
                account for account in accounts if folding.account_name(account.name) == folded
            ]:
                return sorted(namesakes, key=lambda account: account.name != name)[:limit]
        return []

    def find_cases(self, email: str, *, limit: int, deadline: Deadline) -> list[CaseRecord]:
        read = self._found("Case", "contact_email", addresses.spellings(email), deadline, fold=True)
        cases = [rows.case(self._values("Case", row)) for row in read]
        return [each for each in cases if addresses.email(each.contact_email) == email][:limit]

    def find_registrations(
        self, email: str, *, limit: int, deadline: Deadline
    ) -> list[RegistrationRecord]:
        read = self._found(
            "EventRegistration", "email", addresses.spellings(email), deadline, fold=True
        )
        values = rows.newest_event([self._values("EventRegistration", row) for row in read])
        registrations = [rows.registration(each) for each in values]
        return [
            each
            for each in registrations
            if email in (addresses.email(each.email), addresses.email(each.contact_email))
        ][:limit]

    def find_speakers(
        self, contact_id: str, event_id: str, *, limit: int, deadline: Deadline
    ) -> list[SpeakerRecord]:
        contact, event = self._key(contact_id), self._key(event_id)
        if not contact or (event_id and not event):
            return []
        further = [("event_id", event)] if event else []
        read = self._found("Speaker", "contact_id", [contact], deadline, further, keys=True)
        values = rows.newest_event([self._values("Speaker", row) for row in read])
        return [rows.speaker(each, contact) for each in values][:limit]

    def find_exhibitors(
        self, contact_id: str, *, limit: int, deadline: Deadline
    ) -> list[ExhibitorRecord]:
        contact = self._key(contact_id)
        if not contact:
            return []
        read = self._found("Exhibitor", "contact_id", [contact], deadline, keys=True)
        values = rows.newest_event([self._values("Exhibitor", row) for row in read])
        return [rows.exhibitor(each, contact) for each in values][:limit]

    def _found(
        self,
        kind: str,
        name: str,
        accepted: Sequence[str],
        deadline: Deadline,
        further: Sequence[tuple[str, str]] = (),
        *,
        fold: bool = False,
        keys: bool = False,
    ) -> list[Row]:
        """Return the rows whose field has one of the values, and further fields these ids.

        A kind that is not mapped has no rows.
        """
        self.caller.deadline = deadline
        if not self._has(kind):
            return []
        mapped = self._mapped(kind)
        conditions = [Where(mapped.search_paths(name), tuple(accepted), fold=fold, keys=keys)]
        conditions += [
            Where(mapped.search_paths(field), (key,), keys=True) for field, key in further
        ]
        newest = "event_start" if "event_start" in mapped.fields else "created_at"
        return self._select(kind, conditions, newest=newest)

    # --- creates --------------------------------------------------------------------------------
    def create(self, new: New, *, deadline: Deadline) -> str:
        self.caller.deadline = deadline
        values = self._given(new)
        return self._insert(new.kind, mapping.platform_row(self._mapped(new.kind), values), new)

    def find_created(self, new: New, *, since: datetime, deadline: Deadline) -> str:
        self.caller.deadline = deadline
        mapped, values = self._mapped(new.kind), self._given(new)
        conditions = [Where((self.created_path,), since=since.astimezone(UTC))]
        conditions += [
            Where(paths[:1], (value,), keys=name in _PARENTS, fold=name == "email")
            for name, value in values.items()
            # Long texts cannot be searched, and a platform may derive the account from the contact.
            if value and name not in ("issue", "account_id") and (paths := mapped.fields.get(name))
        ]
        read = self._select(new.kind, conditions)
        matching = [row for row in read if self._is(Values(mapped, row), values)]
        return Values(mapped, matching[-1]).text("id") if matching else ""

    def _is(self, record: Values, values: Mapping[str, str]) -> bool:
        names = [name for name in values if name in record.mapped.fields]
        if values.get("contact_id") and "account_id" in names:
            names.remove("account_id")
        return all(
            record.key(name) == values[name]
            if name in _PARENTS
            else record.text(name).split() == values[name].split()
            or (name == "email" and addresses.email(record.text(name)) == values[name])
            for name in names
        )

    def _given(self, new: New) -> dict[str, str]:
        """Return the values to store, by our field names. Raise UnknownParent."""
        match new:
            case NewAccount():
                return {"name": new.name}
            case NewContact():
                name_fields = {"first_name": new.first_name, "last_name": new.last_name}
                if not self._mapped("Contact").fields.get("last_name"):
                    name_fields = {"name": f"{new.first_name} {new.last_name}".strip()}
                return {
                    **name_fields,
                    "email": new.email,
                    "account_id": self._parent(new, "account_id"),
                }
            case NewCase():
                parents = {name: self._parent(new, name) for name in ("contact_id", "account_id")}
                return {"subject": new.subject, "issue": new.issue, **parents}

    def _parent(self, new: New, name: str) -> str:
        parent_id: str = getattr(new, name)
        key = self._key(parent_id) if parent_id else ""
        if parent_id and not key:
            raise UnknownParent(name)
        return key

    # --- rows -----------------------------------------------------------------------------------
    def _has(self, kind: str) -> bool:
        return kind in self.platform.mappings or bool(self.platform.problem)

    def _mapped(self, kind: str) -> ObjectMapping:
        """Return a kind's mapping, with id and creation time added. Raise MappingWrong."""
        mapped = self.platform.mappings.get(kind)
        if mapped is None:
            raise MappingWrong
        added_fields = {"id": (self.id_path,), "created_at": (self.created_path,)}
        return replace(mapped, fields={**mapped.fields, **added_fields})

    def _values(self, kind: str, row: Row) -> Values:
        return Values(self._mapped(kind), row)

    def _contact(self, row: Row) -> ContactRecord:
        return rows.contact(self._values("Contact", row), self.platform.region)

    def _has_phone(self, contact: ContactRecord, phone: str) -> bool:
        region, numbers = self.platform.region, (phone,)
        return any(
            addresses.same_phones(numbers, addresses.phone_readings(each, region))
            for each in contact.phones
        )
