"""The connector for Odoo 19 and later: its JSON-2 API, POST /json/2/<model>/<method>.

https://www.odoo.com/documentation/19.0/developer/reference/external_api.html
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Annotated, ClassVar
from urllib.parse import quote

import orjson
from pydantic import Field, SecretStr

from rme.core import addresses
from rme.core.cache import TtlCache
from rme.core.html_entities import unescape
from rme.core.provider.credentials import DESTINATION
from rme.crm.connectors.base import (
    MappingWrong,
    PlatformAway,
    PlatformRefused,
    PlatformSlow,
)
from rme.crm.connectors.conditions import Where, phone_digits
from rme.crm.connectors.mapped import SCAN, MappedConnector, RemoteSettings
from rme.crm.connectors.odoo.errors import Parent, error_of
from rme.crm.connectors.platform_calls import json_of, limit_of
from rme.crm.connectors.records import New
from rme.crm.connectors.values import Row
from rme.crm.mapping import Scalar
from rme.transport.messages import InvalidRequest

_ID = re.compile(r"[1-9][0-9]{0,9}")
_LARGEST_ID = 2**31 - 1
_REFERENCE = re.compile(r"([a-z][a-z0-9_.]{0,79}),([1-9][0-9]{0,9})")
"""A record of any model, as Odoo writes it: an id alone is unique within its model only."""
_TAG = re.compile(r"<[^<>]*+>")  # excludes `<`, so that the match takes linear time
_BREAK = re.compile(r"<br\s*/?>|</p>|</div>", re.IGNORECASE)
_LIKE = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})

FieldTypes = Mapping[str, Mapping[str, str]]
"""By field of a model, its `type` and, for a reference, its `relation`: the other model."""
_types: TtlCache[tuple[str, str, str], FieldTypes] = TtlCache(seconds=600)


class OdooSettings(RemoteSettings):
    """The address of an organization's Odoo, and the credentials."""

    address: Annotated[str, DESTINATION] = Field(description="Like https://acme.odoo.com.")
    database: str = Field(default="", description="Needed if the server has several databases.")
    api_key: SecretStr = Field(description="An API key of the integration user.")


class OdooConnector(MappedConnector):
    """One organization's records in its Odoo."""

    Settings = OdooSettings
    label = "Odoo 19"
    id_path = "id"
    created_path = "create_date"
    batch: ClassVar[int] = 1000

    def _describe_object(self, name: str) -> Mapping[str, str]:
        types = self._read_types(name)
        return {field: properties.get("relation", "") for field, properties in types.items()}

    # --- reading --------------------------------------------------------------------------------
    def _select(
        self,
        kind: str,
        conditions: Sequence[Where],
        *,
        newest: str = "created_at",
        limit: int = SCAN,
    ) -> list[Row]:
        mapped = self._mapped(kind)
        domain = [term for each in conditions for term in _domain(each)]
        domain += [[c.path, c.operator, c.value] for c in mapped.filter]
        paths = mapped.paths(name for name in mapped.fields if not name.startswith("find_"))
        # Odoo sorts only by stored fields of the model; the time of an event is in another one.
        order = "id desc" if newest else f"{mapped.fields['name'][0]}, id"
        rows = self._fetch(mapped.object, domain, paths, order, limit)
        return (
            [self._with_plain_text(mapped.object, row) for row in rows] if kind == "Case" else rows
        )

    def _select_by_phone(self, phone: str) -> list[Row]:
        mapped = self._mapped("Contact")
        paths = mapped.fields.get("find_phone") or mapped.fields.get("phones", ())
        spellings = addresses.phone_spellings(phone)
        if rows := self._select("Contact", [Where(paths, equals=spellings)]):
            return rows
        # Odoo stores a number as typed if it cannot convert it to E.164.
        national = min((each.national for each in phone_digits(phone)), key=len)
        return self._select("Contact", [Where(paths, like="%" + "%".join(national))])

    def _fetch(
        self, model: str, domain: list[object], paths: Sequence[str], order: str, limit: int
    ) -> list[Row]:
        """Return rows with the records that they refer to: one call more for each reference."""
        roots = list(dict.fromkeys(path.partition(".")[0] for path in paths))
        rows = _rows(
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
        self, model: str, root: str, below: Sequence[str], rows: Sequence[dict[str, object]]
    ) -> None:
        """Replace the references of rows, `[id, label]`, by the records with these fields."""
        keys = {key for row in rows if (key := _reference_of(row, root)) is not None}
        relation = self._types(model).get(root, {}).get("relation", "") if keys else ""
        if not relation:
            return
        domain: list[object] = [["id", "in", sorted(keys)]]
        records = self._fetch(relation, domain, [*below, "display_name"], "id", len(keys))
        by_id = {each["id"]: each for each in records}
        for row in rows:
            if (key := _reference_of(row, root)) is not None:
                row[root] = by_id.get(key, False)

    def _with_plain_text(self, model: str, row: Row) -> Row:
        """Return a row whose HTML fields are plain text."""
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
        parent_ids = {name: str(getattr(new, name, "")) for name in ("contact_id", "account_id")}
        parents = [
            Parent(name, mapped.fields[name][0].partition(".")[0], self._key(key))
            for name, key in parent_ids.items()
            if key and name in mapped.fields
        ]
        for parent in parents:
            row[parent.root] = int(row[parent.root])
        for name, value in row.items():
            if types.get(name, {}).get("type") == "html":
                row[name] = escape(str(value)).replace("\n", "<br/>")
        match self._call(mapped.object, "create", {"vals_list": [row]}, parents):
            case [int() as identifier, *_]:
                return str(identifier)
        raise PlatformSlow

    # --- calls ----------------------------------------------------------------------------------
    def _types(self, model: str) -> FieldTypes:
        key = (self.organization_id, str(self.platform.settings.get("address")), model)
        return _types.get(key, lambda: self._read_types(model)) or {}

    def _read_types(self, model: str) -> FieldTypes:
        types = self._call(model, "fields_get", {"attributes": ["type", "relation"]})
        if not isinstance(types, dict):
            raise PlatformAway
        return types

    def _call(
        self,
        model: str,
        method: str,
        arguments: Mapping[str, object],
        parents: Sequence[Parent] | None = None,
    ) -> object:
        """Return the result of a method. `parents`: those of a record to create; None: a read.

        Raise PlatformError.
        """
        settings = self.platform.settings
        if self.platform.problem:
            raise MappingWrong
        headers = [("Authorization", f"bearer {settings.get('api_key', '')}")]
        headers += [("Content-Type", "application/json"), ("User-Agent", "rme")]
        if database := settings.get("database"):
            headers.append(("X-Odoo-Database", str(database)))
        address = str(settings.get("address", "")).rstrip("/")
        creates = parents is not None
        try:
            reply = self.caller.call(
                f"{address}/json/2/{quote(model)}/{method}",
                headers=tuple(headers),
                body=orjson.dumps(arguments),
                creates=creates,
            )
        except InvalidRequest as error:  # the key is no header value, or the address no URL
            raise PlatformRefused from error
        except orjson.JSONEncodeError as error:
            raise PlatformAway from error
        if reply.status == 429:
            raise limit_of(reply)
        if reply.status in (401, 403):
            raise PlatformRefused
        result = json_of(reply, creates=creates)
        if reply.status == 200:
            return result
        raise error_of(reply.status, result if isinstance(result, dict) else {}, parents or ())


def _domain(condition: Where) -> list[object]:
    """Return a condition as an Odoo domain: prefix notation, one `|` before each two terms."""
    terms: list[object] = []
    for path in condition.paths:
        if condition.keys:
            terms.append([path, "in", [int(value) for value in condition.equals]])
        elif condition.fold and not path.endswith("_normalized"):
            terms += [[path, "=ilike", value.translate(_LIKE)] for value in condition.equals]
        elif condition.equals:
            terms.append([path, "in", list(condition.equals)])
        if condition.like:
            terms.append([path, "=ilike", condition.like])
        if condition.since:
            terms.append([path, ">=", condition.since.strftime("%Y-%m-%d %H:%M:%S")])
    return [*["|"] * (len(terms) - 1), *terms]


def _rows(rows: object) -> list[dict[str, object]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "id" in row for row in rows):
        raise PlatformAway
    return rows


def _reference_of(row: Row, name: str) -> int | None:
    """Return the id that a row's field refers to, or None."""
    match row.get(name):
        case [int() as key, *_]:
            return key
    return None


def _text_of(value: object) -> object:
    """Return HTML as plain text; other values unchanged."""
    if not isinstance(value, str):
        return value
    return unescape(_TAG.sub("", _BREAK.sub("\n", value))).strip()
