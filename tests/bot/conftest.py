"""A bot of an organization, with a real key, and what it may look up."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from rme.crm.models import Account, Contact, Event
from rme.tenants.models import Organization
from rme.tenants.oauth import api_keys
from tests import factories
from tests.bot.confirm_scene import START

FORM = "application/x-www-form-urlencoded"
REQUEST_ID = "7b0f9f0e-6a53-4a0b-9a53-0d6d8f3c2a11"
UNAUTHORIZED = {"code": 401, "status": "Unauthorized"}


@dataclass
class Bot:
    """Calls the two paths as a bot does; `call` gives the response, the others its body."""

    org: Organization
    key: str
    client: Client

    def headers(self, **more: str) -> dict[str, str]:
        return {"X-API-Key": self.key, "X-Request-Id": REQUEST_ID, **more}

    def get(self, action: str, **fields: str) -> Any:
        query = urlencode({"action": action, "org": self.org.pk, **fields})
        return self.client.get(f"/bot/api.php?{query}", headers=self.headers())

    def post(self, action: str, /, headers: Any = None, **fields: str) -> Any:
        body = urlencode({"action": action, "org": self.org.pk, **fields})
        given = self.headers(**(headers or {}))
        return self.client.post("/bot/api_create.php", body, FORM, headers=given)

    def confirm(self, action: str, **fields: str) -> list[dict[str, Any]]:
        """Look up, and give the records of an answer that must be whole."""
        response = self.get(action, **fields)
        body = response.json()
        records: list[dict[str, Any]] = body["msg"]
        assert (response.status_code, body) == (200, found(*records))
        return records

    def create(self, action: str, /, **fields: str) -> tuple[str, bool]:
        """Create, and give the id and whether it was made, of an answer that must be whole."""
        response = self.post(action, **fields)
        body = response.json()
        kind = action.removeprefix("Create_")
        done = "Created Successfully" if body.get("created") else "Already Exists"
        assert (response.status_code, body) == (
            200,
            {
                "code": 200,
                "status": f"{kind} {done}",
                "id": body.get("id"),
                "created": body.get("created"),
                "requestId": REQUEST_ID,
            },
        )
        return body["id"], body["created"]


def found(*records: Any) -> dict[str, Any]:
    """Write the whole body of a look-up."""
    return {"code": 200, "status": "Success", "msg": list(records), "requestId": REQUEST_ID}


def failure(code: int, status: str, error: str, message: str, field: str = "", **more: Any) -> Any:
    """Write the whole body of a failure."""
    return {
        "code": code,
        "status": status,
        "error": error,
        "field": field,
        "message": message,
        "msg": [],
        **more,
        "requestId": REQUEST_ID,
    }


def bad(field: str, why: str, error: str = "invalid_parameter") -> Any:
    """Write the whole body of a 400."""
    return failure(400, "Bad Request", error, f"{field} {why}", field)


def bot_of(org: Organization, **restrictions: Any) -> Bot:
    """Create a bot for an organization."""
    return Bot(org, api_keys.issue(org, "bot", **restrictions)[1], Client())


@pytest.fixture
def bot(db: None, redis: Any) -> Bot:
    return bot_of(factories.organization())


@pytest.fixture
def account(bot: Bot) -> Account:
    return Account.objects.create(
        organization=bot.org, name="Café Müller GmbH", phone="+41", website="https://x.example"
    )


@pytest.fixture
def ada(bot: Bot, account: Account) -> Contact:
    """Return a contact of the account."""
    return factories.contact(
        bot.org, email="Ada@Example.org", account=account, phone="+12127365000"
    )


@pytest.fixture
def event(bot: Bot) -> Event:
    return Event.objects.create(organization=bot.org, name="Congress", starts_at=START)
