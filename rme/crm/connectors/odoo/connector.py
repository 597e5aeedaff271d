"""Odoo 19 and later, by its JSON-2 API: POST /json/2/<model>/<method>.

https://www.odoo.com/documentation/19.0/developer/reference/external_api.html. An error is an HTTP
status and a JSON object whose `name` is the exception's; its `debug` is a traceback, and nothing
of it goes further. Unknown fields are 500 builtins.ValueError, a missing model is 404
werkzeug.exceptions.NotFound, and a missing parent 404 odoo.exceptions.MissingError or 422
odoo.exceptions.ValidationError, as the model looks at it or leaves that to the database.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

import orjson
from pydantic import Field, SecretStr

from rme.core.cache import TtlCache
from rme.core.credentials import DESTINATION
from rme.core.html_entities import unescape
from rme.crm.connectors.base import (
    Deadline,
    Duplicate,
    MappingWrong,
    PlatformAway,
    PlatformError,
    PlatformRefused,
    PlatformSlow,
    UnknownParent,
)
from rme.crm.connectors.conditions import Description, Where, digits_of
from rme.crm.connectors.mapped import SCAN, MappedConnector
from rme.crm.connectors.platform_calls import json_of, limit_of
from rme.crm.connectors.records import New
from rme.crm.connectors.remote_settings import RemoteSettings
from rme.crm.connectors.values import Row
from rme.crm.mapping import Scalar
from rme.transport import InvalidRequest, Reply

_ID = re.compile(r"[1-9][0-9]{0,9}")
_LARGEST_ID = 2**31 - 1
_REFERENCE = re.compile(r"([a-z][a-z0-9_.]{0,79}),([1-9][0-9]{0,9})")
"""How Odoo writes a record of any model: its ids alone are each model's own."""
_TAG = re.compile(r"<[^<>]*+>")  # no `<` within, so that no part is looked at twice
_BREAK = re.compile(r"<br\s*/?>|</p>|</div>", re.IGNORECASE)
_LIKE = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})
_MISSING = re.compile(r"\(Record: [a-z0-9_.]+\(([0-9]+),")

_NAMES_FIELD = ("Invalid field", "Cannot convert", "Unknown field")
"""How messages about a field that a model has not begin."""

Types = Mapping[str, Mapping[str, str]]
"""By field, its `type` and the `relation` it has."""
_types: TtlCache[tuple[str, str, str], Types] = TtlCache(seconds=600)


class OdooSettings(RemoteSettings):
    """Where the Odoo is, and as whom we come."""

    address: Annotated[str, DESTINATION] = Field(description="Like https://acme.odoo.com.")
    database: str = Field(default="", description="Needed where the server has several.")
    api_key: SecretStr = Field(description="Of the user that we act as, under its preferences.")


class OdooConnector(MappedConnector):
    """Read and write records of one organization in its Odoo."""

    Settings = OdooSettings
    label = "Odoo 19"
    id_path = "id"
    created_path = "create_date"
    batch: ClassVar[int] = 1000

    def describe(self, objects: Iterable[str], *, deadline: Deadline) -> Description:
        self.caller.deadline = deadline
        described: dict[str, Mapping[str, str] | None] = {}
        for name in dict.fromkeys(objects):
            try:
                types = self._read_types(name)
            except MappingWrong:
                described[name] = None
            else:
                described[name] = {field: of.get("relation", "") for field, of in types.items()}
        return described

    # --- reading --------------------------------------------------------------------------------
    def _select(
        self, kind: str, where: Sequence[Where], *, newest: str = "created_at", limit: int = SCAN
    ) -> list[Row]:
        mapped = self._mapped(kind)
        domain: list[Any] = [term for each in where for term in _domain(each)]
        domain += [[c.path, c.operator, c.value] for c in mapped.filter]
        paths = mapped.paths(name for name in mapped.fields if not name.startswith("find_"))
        # It sorts by what it stores itself alone, and the time of an event is another record's.
        order = "id desc" if newest else f"{mapped.fields['name'][0]}, id"
        rows = self._fetch(mapped.object, domain, paths, order, limit)
        return [self._plain(mapped.object, row) for row in rows] if kind == "Case" else rows

    def _select_by_phone(self, phone: str) -> list[Row]:
        mapped = self._mapped("Contact")
        paths = mapped.fields.get("find_phone") or mapped.fields.get("phones", ())
        if rows := self._select("Contact", [Where(paths, equals=(phone,))]):
            return rows
        # a number that Odoo could not bring into E.164 is there as it was typed
        national = digits_of(phone)[1]
        return self._select("Contact", [Where(paths, like="%" + "%".join(national))])

    def _fetch(
        self, model: str, domain: list[Any], paths: Sequence[str], order: str, limit: int
    ) -> list[Row]:
        """Read rows, and what they refer to by one call for each reference."""
        roots = list(dict.fromkeys(path.partition(".")[0] for path in paths))
        rows: list[dict[str, Any]] = _dicts(
            self._call(
                model,
                "search_read",
                {"domain": domain, "fields": roots, "order": order, "limit": limit},
            )
        )
        for root in roots:
            below = [path.partition(".")[2] for path in paths if path.startswith(f"{root}.")]
            if below:
                self._follow(model, root, below, rows)
        return [*rows]

    def _follow(
        self, model: str, root: str, below: Sequence[str], rows: Sequence[dict[str, Any]]
    ) -> None:
        """Put the records that rows refer to in the place of their ids."""
        wanted = {row[root][0] for row in rows if isinstance(row.get(root), list) and row[root]}
        relation = self._types(model).get(root, {}).get("relation", "") if wanted else ""
        if not relation:
            return
        domain = [["id", "in", sorted(wanted)]]
        found = self._fetch(relation, domain, [*below, "display_name"], "id", len(wanted))
        by_id = {each["id"]: each for each in found}
        for row in rows:
            if isinstance(row.get(root), list) and row[root]:
                row[root] = by_id.get(row[root][0], False)

    def _plain(self, model: str, row: Row) -> Row:
        """Make text of what is HTML."""
        types = self._types(model)
        return {
            name: _text_of(value) if types.get(name, {}).get("type") == "html" else value
            for name, value in row.items()
        }

    # --- ids ------------------------------------------------------------------------------------
    def _key(self, record_id: str) -> str:
        reference = _REFERENCE.fullmatch(record_id)
        key = reference[2] if reference else record_id
        return key if _ID.fullmatch(key) and int(key) <= _LARGEST_ID else ""

    def _may_be(self, kind: str, record_id: str) -> bool:
        if not self._key(record_id) or not self._has(kind):
            return False
        reference = _REFERENCE.fullmatch(record_id)
        return not reference or reference[1] == self._mapped(kind).object

    # --- creates --------------------------------------------------------------------------------
    def _insert(self, kind: str, row: dict[str, Scalar], new: New) -> str:
        mapped = self._mapped(kind)
        types = self._types(mapped.object) if kind == "Case" else {}
        given = {name: str(getattr(new, name, "")) for name in ("contact_id", "account_id")}
        parents = [
            _Parent(name, mapped.fields[name][0].partition(".")[0], self._key(key))
            for name, key in given.items()
            if key and name in mapped.fields
        ]
        for parent in parents:
            row[parent.root] = int(row[parent.root])
        for name, value in row.items():
            if types.get(name, {}).get("type") == "html":
                row[name] = escape(str(value)).replace("\n", "<br/>")
        made = self._call(mapped.object, "create", {"vals_list": [row]}, parents)
        if not isinstance(made, list) or not made or not isinstance(made[0], int):
            raise PlatformSlow
        return str(made[0])

    # --- calls ----------------------------------------------------------------------------------
    def _types(self, model: str) -> Types:
        key = (self.organization_id, str(self.platform.settings.get("address")), model)
        return _types.get(key, lambda: self._read_types(model)) or {}

    def _read_types(self, model: str) -> Types:
        types = self._call(model, "fields_get", {"attributes": ["type", "relation"]})
        if not isinstance(types, dict):
            raise PlatformAway
        return types

    def _call(
        self,
        model: str,
        method: str,
        given: Mapping[str, Any],
        creating: Sequence["_Parent"] | None = None,
    ) -> Any:
        """Call a method; gives what it returned. `creating`: the parents of what is made.

        Raises PlatformError.
        """
        settings = self.platform.settings
        if self.platform.problem:
            raise MappingWrong
        headers = [("Authorization", f"bearer {settings.get('api_key', '')}")]
        headers += [("Content-Type", "application/json"), ("User-Agent", "rme")]
        if database := settings.get("database"):
            headers.append(("X-Odoo-Database", str(database)))
        address = str(settings.get("address", "")).rstrip("/")
        creates = creating is not None
        try:
            reply = self.caller.call(
                f"{address}/json/2/{quote(model)}/{method}",
                headers=tuple(headers),
                body=orjson.dumps(given),
                creates=creates,
            )
        except InvalidRequest as error:  # a key or an address that cannot be written
            raise PlatformRefused from error
        except orjson.JSONEncodeError as error:
            raise PlatformAway from error
        if reply.status == 429:
            raise limit_of(reply)
        if reply.status in (401, 403):
            raise PlatformRefused
        said = json_of(reply, creates=creates)
        if reply.status == 200:
            return said
        raise _error(reply, said if isinstance(said, dict) else {}, creating or ())


@dataclass(frozen=True, slots=True)
class _Parent:
    """A record that a new one names: our field, Odoo's, and the id."""

    name: str
    root: str
    key: str


def _error(reply: Reply, said: Mapping[str, Any], parents: Sequence[_Parent]) -> PlatformError:
    """Say which of our errors an answer of Odoo's is."""
    name = str(said.get("name", "")).rpartition(".")[2]
    message = str(said.get("message", ""))
    if missing := _missing(name, message, parents):
        return UnknownParent(missing)
    if name == "UniqueViolation":
        return Duplicate("")
    if name in ("AccessDenied", "AccessError", "SessionExpiredException"):
        return PlatformRefused()
    if reply.status in (404, 422) or message.startswith(_NAMES_FIELD):
        return MappingWrong()
    return PlatformAway()


def _missing(name: str, message: str, parents: Sequence[_Parent]) -> str:
    """Name the parent that is not there: by its id, or by the constraint that it breaks, whose
    message is that of a deletion and ends with the field in parentheses.
    """
    found = _MISSING.search(message) if name == "MissingError" else None
    for parent in parents:
        if found and found[1] == parent.key:
            return parent.name
        if name == "ValidationError" and f"({parent.root})" in message:
            return parent.name
    return ""


def _domain(where: Where) -> list[Any]:
    """Write a condition in Polish notation."""
    terms: list[Any] = []
    for path in where.paths:
        if where.keys:
            terms.append([path, "in", [int(value) for value in where.equals]])
        elif where.fold and not path.endswith("_normalized"):
            terms += [[path, "=ilike", value.translate(_LIKE)] for value in where.equals]
        elif where.equals:
            terms.append([path, "in", list(where.equals)])
        if where.like:
            terms.append([path, "=ilike", where.like])
        if where.since:
            terms.append([path, ">=", where.since.strftime("%Y-%m-%d %H:%M:%S")])
    return ["|"] * (len(terms) - 1) + terms


def _dicts(rows: Any) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "id" in row for row in rows):
        raise PlatformAway
    return rows


def _text_of(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return unescape(_TAG.sub("", _BREAK.sub("\n", value))).strip()
