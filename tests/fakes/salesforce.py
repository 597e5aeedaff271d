"""A Salesforce on loopback: tokens, SOQL, SOSL, creates and descriptions, answered from rows."""

import json
import re
import socket
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.fakes import soql
from tests.fakes.http1 import Http1Server, Seen, respond
from tests.fakes.tls import server_context

STANDARD: dict[str, dict[str, str]] = {
    "Account": {"Name": "", "Phone": "phone", "Website": "", "Industry": ""},
    "Contact": {
        **dict.fromkeys(["FirstName", "LastName", "Email", "LeadSource", "Language__c"], ""),
        **dict.fromkeys(["MobilePhone", "Phone", "HomePhone", "OtherPhone"], "phone"),
        "AccountId": "Account",
    },
    "Case": {
        **dict.fromkeys(["CaseNumber", "Subject", "Description", "Status", "Priority"], ""),
        "IsClosed": "",
        "Origin": "",
        "ContactId": "Contact",
        "AccountId": "Account",
    },
    "Event__c": {"Name": "", "Start__c": "", "End__c": ""},
    "Attendee__c": {
        **dict.fromkeys(["Name", "Email__c", "Status__c"], ""),
        "Event__c": "Event__c",
        "Contact__c": "Contact",
    },
    "Speaker__c": {
        **dict.fromkeys(["Name", "Title__c", "Room__c"], ""),
        "Event__c": "Event__c",
        "Contact__c": "Contact",
    },
    "Exhibitor__c": {
        **dict.fromkeys(["Name", "Booth__c"], ""),
        "Event__c": "Event__c",
        "Contact__c": "Contact",
        "Account__c": "Account",
    },
}
"""Fields by object: `phone`, the object that is referred to, or nothing."""
PREFIXES = {"Account": "001", "Contact": "003", "Case": "500"}
_BASE = datetime.now(UTC) - timedelta(seconds=1)


class Refused(Exception):
    """An error as Salesforce writes it."""

    def __init__(self, status: int, code: str, message: str = "no", **more: Any) -> None:
        super().__init__(code)
        self.status = status
        self.body = [{"message": message, "errorCode": code, **more}]


def identifier(prefix: str, number: int) -> str:
    """Return a record id of 18 characters: 15 and a checksum of their case."""
    bare = f"{prefix}aB{number:010d}"
    sums = [
        sum(1 << i for i, c in enumerate(bare[at : at + 5]) if c.isupper()) for at in (0, 5, 10)
    ]
    return bare + "".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"[each] for each in sums)


def relationship(field: str) -> str:
    """Name the way to a record that a field refers to."""
    return f"{field[:-1]}r" if field.endswith("__c") else field.removesuffix("Id")


class SalesforceServer(Http1Server):
    """A stub with rows. `refuse` holds errors that are answered next, one a call."""

    def __init__(self) -> None:
        super().__init__(self._answer, server_context())
        self.objects = {name: dict(fields) for name, fields in STANDARD.items()}
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in STANDARD}
        self.sessions: set[str] = set()
        self.logins: list[dict[str, str]] = []
        self.refuse: list[Refused] = []
        self.asked: list[str] = []
        """What was asked for: SOQL, SOSL and paths."""
        self.page = 2000
        self._made = 0

    def add(self, name: str, **fields: Any) -> str:
        """Put a row in, and give its id."""
        if unknown := set(fields) - set(self.objects[name]):
            raise Refused(400, "INVALID_FIELD", f"No such column {unknown}", fields=[*unknown])
        self._made += 1
        prefix = PREFIXES.get(name, f"a0{list(self.objects).index(name)}")
        row = dict.fromkeys(self.objects[name]) | fields
        moment = max(_BASE + timedelta(milliseconds=self._made), datetime.now(UTC))
        row["CreatedDate"] = moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self._made % 1000:03d}+0000"
        row["Id"] = identifier(prefix, self._made)
        self.rows[name].append(row)
        return str(row["Id"])

    # --- HTTP -----------------------------------------------------------------------------------
    def _answer(self, connection: socket.socket, seen: Seen) -> None:
        try:
            status, body = self._give(seen)
        except Refused as error:
            status, body = error.status, error.body
        except soql.Malformed as error:
            status, body = 400, [{"message": str(error), "errorCode": "MALFORMED_QUERY"}]
        respond(connection, status, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _give(self, seen: Seen) -> tuple[int, Any]:
        where = urlsplit(seen.path)
        if where.path == "/services/oauth2/token":
            return self._log_in(dict(pair for pair in _form(seen.body.decode()).items()))
        if (seen.header("Authorization") or "").removeprefix("Bearer ") not in self.sessions:
            raise Refused(401, "INVALID_SESSION_ID", "Session expired or invalid")
        if self.refuse:
            raise self.refuse.pop(0)
        path = unquote(where.path).removeprefix("/services/data/v62.0/")
        given = _form(where.query)
        self.asked.append(given.get("q", path))
        if path == "query/":
            return 200, self._query(given["q"])
        if path == "search/":
            return 200, {"searchRecords": self._search(given["q"])}
        if found := re.fullmatch(r"sobjects/(\w+)/(describe)?", path):
            if found[1] not in self.objects:
                raise Refused(404, "NOT_FOUND", "The requested resource does not exist")
            if found[2]:
                return 200, self._describe(found[1])
            made = self._create(found[1], json.loads(seen.body))
            return 201, {"id": made, "success": True, "errors": []}
        raise Refused(404, "NOT_FOUND")

    def _log_in(self, form: dict[str, str]) -> tuple[int, Any]:
        self.logins.append(form)
        good = form.get("client_secret") == "secret" or form.get("assertion")
        if not good:
            return 400, {"error": "invalid_client", "error_description": "invalid client"}
        token = f"00D!{len(self.logins)}"
        self.sessions.add(token)
        return 200, {"access_token": token, "instance_url": self.url.rstrip("/")}

    # --- rows -----------------------------------------------------------------------------------
    def _read(self, name: str, row: dict[str, Any] | None, path: str) -> Any:
        step, _, rest = path.partition(".")
        fields = {**self.objects[name], "Id": "", "CreatedDate": ""}
        if not rest:
            if step not in fields:
                raise Refused(400, "INVALID_FIELD", f"No such column '{step}' on '{name}'")
            return row.get(step) if row else None
        for field, to in fields.items():
            if to in self.objects and relationship(field) == step:
                there = self._by_id(to, row.get(field)) if row else None
                return self._read(to, there, rest)
        raise Refused(400, "INVALID_FIELD", f"Didn't understand relationship '{step}'")

    def _by_id(self, name: str, wanted: Any) -> dict[str, Any] | None:
        return next((row for row in self.rows[name] if row["Id"] == wanted), None)

    def _run(self, query: soql.Query, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for path in query.paths:
            self._read(query.object, None, path)
        found = [r for r in rows if query.test(lambda path, r=r: self._read(query.object, r, path))]
        for path, falling in reversed(query.order):
            values = {row["Id"]: self._read(query.object, row, path) for row in found}
            known = [row for row in found if values[row["Id"]] is not None]
            known.sort(key=lambda row: str(values[row["Id"]]).lower(), reverse=falling)
            found = known + [row for row in found if values[row["Id"]] is None]
        return [self._shown(query, row) for row in found[: query.limit]]

    def _shown(self, query: soql.Query, row: dict[str, Any]) -> dict[str, Any]:
        shown: dict[str, Any] = {"attributes": {"type": query.object}}
        for path in query.fields:
            *steps, last = path.split(".")
            inner: Any = shown
            for at, step in enumerate(steps):
                there = self._read(query.object, row, ".".join([*steps[: at + 1], "Id"]))
                if there is None:
                    inner[step] = None
                    break
                inner = inner.setdefault(step, {"attributes": {}})
            else:
                inner[last] = self._read(query.object, row, path)
        return shown

    def _query(self, text: str) -> dict[str, Any]:
        query = soql.query(text)
        if query.object not in self.objects:
            raise Refused(400, "INVALID_TYPE", f"sObject type '{query.object}' is not supported.")
        found = self._run(query, self.rows[query.object])
        return {"totalSize": len(found), "done": True, "records": found}

    def _search(self, text: str) -> list[dict[str, Any]]:
        terms, query = soql.search(text)
        phones = [field for field, kind in self.objects[query.object].items() if kind == "phone"]
        rows = [
            row
            for row in self.rows[query.object]
            if any(_has(row[field], terms) for field in phones)
        ]
        return self._run(query, rows)

    def _create(self, name: str, given: dict[str, Any]) -> str:
        for field, value in given.items():
            to = self.objects[name].get(field, "")
            if to in self.objects and value and self._by_id(to, value) is None:
                raise Refused(400, "INVALID_CROSS_REFERENCE_KEY", "invalid id", fields=[field])
        if name == "Case":
            contact = self._by_id("Contact", given.get("ContactId")) or {}
            given = {"IsClosed": False, "AccountId": contact.get("AccountId"), **given}
        return self.add(name, **given)

    def _describe(self, name: str) -> dict[str, Any]:
        fields = [{"name": "Id"}, {"name": "CreatedDate"}]
        for field, to in self.objects[name].items():
            more = {"relationshipName": relationship(field), "referenceTo": [to]}
            fields.append({"name": field, **(more if to in self.objects else {})})
        return {"name": name, "fields": fields}


def _form(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}


def _has(phone: Any, terms: list[str]) -> bool:
    digits = re.sub(r"\D", "", str(phone or ""))
    return bool(digits) and any(digits == term or digits.endswith(term) for term in terms)
