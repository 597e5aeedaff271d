"""An Odoo 19 on loopback: JSON-2 with domains, answered from rows, and its errors as they are."""

import json
import re
import socket
import unicodedata
from datetime import UTC, datetime
from typing import Any

import phonenumbers

from tests.fakes.http1 import Http1Server, Seen, respond
from tests.fakes.tls import server_context

KEY = "k" * 40
DATABASE = "acme"
_COMMON = {"id": "integer", "display_name": "char", "create_date": "datetime"}
MODELS: dict[str, dict[str, str]] = {
    "res.partner": {
        **dict.fromkeys(["name", "email", "email_normalized", "phone", "phone_sanitized"], "char"),
        **dict.fromkeys(["website", "x_mobile"], "char"),
        "lang": "selection",
        "tz": "selection",
        "is_company": "boolean",
        "parent_id": "res.partner",
        "commercial_partner_id": "res.partner",
        "child_ids": "*res.partner",
    },
    "helpdesk.stage": {"name": "char", "fold": "boolean"},
    "helpdesk.ticket": {
        **dict.fromkeys(["ticket_ref", "name", "partner_email"], "char"),
        "description": "html",
        "priority": "selection",
        "stage_id": "helpdesk.stage",
        "partner_id": "res.partner",
    },
    "project.project": {"name": "char"},
    "project.task": {
        "name": "char",
        "description": "html",
        "priority": "selection",
        "state": "selection",
        "stage_id": "helpdesk.stage",
        "project_id": "project.project",
        "partner_id": "res.partner",
    },
    "event.event": {"name": "char", "date_begin": "datetime", "date_end": "datetime"},
    "event.event.ticket": {"name": "char"},
    "event.registration": {
        "name": "char",
        "email": "char",
        "state": "selection",
        "event_id": "event.event",
        "partner_id": "res.partner",
        "event_ticket_id": "event.event.ticket",
    },
    "event.track.location": {"name": "char"},
    "event.track": {
        **dict.fromkeys(["name", "partner_name", "partner_email", "contact_email"], "char"),
        "event_id": "event.event",
        "partner_id": "res.partner",
        "date": "datetime",
        "location_id": "event.track.location",
        "stage_id": "helpdesk.stage",
    },
    "event.sponsor": {
        "event_id": "event.event",
        "partner_id": "res.partner",
        "x_booth": "char",
        "sponsor_type_id": "event.event.ticket",
        "exhibitor_type": "selection",
    },
}
"""Fields by model: a type, a model (many2one), or a model behind a star (one2many)."""


class Refused(Exception):
    """An error as Odoo's JSON-2 dispatcher writes it."""

    def __init__(self, status: int, name: str, message: str = "no") -> None:
        super().__init__(name)
        self.status = status
        self.body = {
            "name": name,
            "message": message,
            "arguments": [message],
            "context": {},
            "debug": "Traceback (most recent call last):\n  File /opt/odoo/http.py, in _serve_db",
        }


class OdooServer(Http1Server):
    """A stub with rows. `refuse` holds errors that are answered next, one a call.

    All rows share one sequence of ids, so that an id of one model is none of another's.
    """

    def __init__(self) -> None:
        super().__init__(self._answer, server_context())
        self.rows: dict[str, list[dict[str, Any]]] = {model: [] for model in MODELS}
        self.refuse: list[Refused] = []
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self._made = 0

    def add(self, model: str, **fields: Any) -> str:
        """Put a row in, and give its id as a text."""
        if unknown := [name for name in fields if name not in MODELS[model]]:
            raise Refused(500, "builtins.ValueError", f"Invalid field '{unknown[0]}' in '{model}'")
        for name, value in fields.items():
            to = MODELS[model][name]
            if to in MODELS and value:
                if not isinstance(value, int):
                    name = "psycopg2.errors.InvalidTextRepresentation"
                    raise Refused(500, name, f'invalid input syntax for type integer: "{value}"')
                if self._row(to, value) is None:
                    gone = "Record does not exist or has been deleted."
                    message = f"{gone}\n(Record: {to}({value},), User: 2)"
                    raise Refused(404, "odoo.exceptions.MissingError", message)
        self._made += 1
        row: dict[str, Any] = dict.fromkeys({**_COMMON, **MODELS[model]}, False)
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        row |= {"id": self._made, "create_date": now, **fields}
        row["display_name"] = row.get("name") or f"{model},{self._made}"
        if model == "res.partner":
            row["email_normalized"] = _normalized(row["email"])
            row["phone_sanitized"] = _sanitized(row["phone"])
            row["commercial_partner_id"] = row["parent_id"] or self._made
        self.rows[model].append(row)
        return str(self._made)

    # --- HTTP -----------------------------------------------------------------------------------
    def _answer(self, connection: socket.socket, seen: Seen) -> None:
        found = re.fullmatch(r"/json/2/([a-z0-9_.]+)/([a-z_]+)", seen.path)
        if seen.header("X-Odoo-Database") != DATABASE or not found or seen.method != "POST":
            page = b"<!DOCTYPE html>\n<title>404 Not Found</title>"
            respond(connection, 404, page, {"Content-Type": "text/html"})
            return
        try:
            status, body = 200, self._give(seen, found[1], found[2])
        except Refused as error:
            status, body = error.status, error.body
        respond(connection, status, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _give(self, seen: Seen, model: str, method: str) -> Any:
        if seen.header("Authorization") != f"bearer {KEY}":
            raise Refused(401, "werkzeug.exceptions.Unauthorized", "Invalid apikey")
        if self.refuse:
            raise self.refuse.pop(0)
        given = json.loads(seen.body)
        self.asked.append((model, method, given))
        if model not in MODELS:
            message = f"the model '{model}' does not exist"
            raise Refused(404, "werkzeug.exceptions.NotFound", message)
        match method:
            case "search_read":
                return self._search_read(model, **given)
            case "create":
                return [int(self._create(model, each)) for each in given["vals_list"]]
            case "fields_get":
                return {name: _described(of) for name, of in _fields(model).items()}
        raise Refused(404, "werkzeug.exceptions.NotFound", f"The method '{method}' does not exist")

    # --- rows -----------------------------------------------------------------------------------
    def _row(self, model: str, wanted: int) -> dict[str, Any] | None:
        return next((row for row in self.rows[model] if row["id"] == wanted), None)

    def _create(self, model: str, given: dict[str, Any]) -> str:
        if model == "res.partner" and not given.get("name"):
            raise Refused(422, "odoo.exceptions.ValidationError", "Contacts require a name")
        if model == "helpdesk.ticket":
            given.setdefault("stage_id", int(self.stage("New", fold=False)))
            given.setdefault("partner_email", self._email_of(given))
        if model == "project.task":
            given.setdefault("state", "01_in_progress")
        return self.add(model, **given)

    def _email_of(self, given: dict[str, Any]) -> Any:
        partner = self._row("res.partner", given.get("partner_id", 0))
        return partner["email"] if partner else False

    def stage(self, name: str, *, fold: bool) -> str:
        """Return a stage of tickets; a folded one is final."""
        known = [row for row in self.rows["helpdesk.stage"] if row["name"] == name]
        return str(known[0]["id"]) if known else self.add("helpdesk.stage", name=name, fold=fold)

    def _search_read(
        self, model: str, *, domain: list[Any], fields: list[str], order: str, limit: int
    ) -> list[dict[str, Any]]:
        for name in fields:
            if name not in _fields(model):
                message = f"Invalid field '{name}' on '{model}'"
                raise Refused(500, "builtins.ValueError", message)
        found = [row for row in self.rows[model] if self._meets(model, row, domain)]
        for each in reversed(order.split(", ")):
            name, _, way = each.partition(" ")
            if name not in _fields(model):
                message = f"Invalid field '{name}' on model '{model}'"
                raise Refused(500, "builtins.ValueError", message)
            found.sort(key=lambda row, name=name: row[name], reverse=way == "desc")
        return [
            {"id": row["id"], **{name: self._shown(model, row, name) for name in fields}}
            for row in found[:limit]
        ]

    def _shown(self, model: str, row: dict[str, Any], name: str) -> Any:
        to = _fields(model)[name]
        if to in MODELS and row[name]:
            there = self._row(to, row[name])
            return [row[name], there["display_name"] if there else False]
        return row[name]

    def _meets(self, model: str, row: dict[str, Any], domain: list[Any]) -> bool:
        """Evaluate a domain in Polish notation; terms that stand side by side are all needed."""
        stack: list[bool] = []
        for term in reversed(domain):
            if term == "|":
                stack.append(any([stack.pop(), stack.pop()]))
            elif term == "&":
                stack.append(all([stack.pop(), stack.pop()]))
            else:
                path, operator, value = term
                found = self._values(model, row, path)
                stack.append(any(_holds(each, operator, value) for each in found))
        return all(stack)

    def _values(self, model: str, row: dict[str, Any], path: str) -> list[Any]:
        step, _, rest = path.partition(".")
        to = _fields(model).get(step, "")
        if not to:
            message = f"Invalid field {model}.{step} in condition"
            raise Refused(500, "builtins.ValueError", message)
        if to.startswith("*"):
            return [child["id"] for child in self.rows[to[1:]] if child["parent_id"] == row["id"]]
        if rest:
            there = self._row(to, row[step])
            return self._values(to, there, rest) if there else [False]
        return [row[step]]


def _fields(model: str) -> dict[str, str]:
    return {**_COMMON, **MODELS[model]}


def _described(of: str) -> dict[str, str]:
    if of.startswith("*"):
        return {"type": "one2many", "relation": of[1:]}
    return {"type": "many2one", "relation": of} if of in MODELS else {"type": of}


def _holds(found: Any, operator: str, value: Any) -> bool:
    match operator:
        case "=":
            return bool(found == value)
        case "!=":
            return bool(found != value)
        case "in":
            return found in value
        case ">=":
            return bool(found) and found >= value
        case "=ilike":
            parts = re.findall(r"\\.|.", value, re.DOTALL)
            wild = {"%": ".*", "_": "."}
            pattern = "".join(wild.get(part, re.escape(part[-1])) for part in parts)
            return bool(found) and bool(re.fullmatch(pattern, found, re.I | re.S))
    raise Refused(500, "builtins.ValueError", f"Invalid operator {operator}")


def _normalized(email: Any) -> Any:
    return unicodedata.normalize("NFC", email).lower() if email else False


def _sanitized(phone: Any) -> Any:
    """Bring a number into E.164, if it says its country."""
    try:
        number = phonenumbers.parse(phone or "", None)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
