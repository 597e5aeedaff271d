"""What a platform returns is compared again: only records that match are reported."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rme.crm.connectors import REGISTRY
from rme.crm.connectors.embedded.connector import EmbeddedConnector
from rme.crm.connectors.records import AccountRecord, CaseRecord, ContactRecord, RegistrationRecord
from tests import factories
from tests.bot.conftest import Bot, bot_of

pytestmark = pytest.mark.django_db

ADA, BOB = "ada@example.org", "bob@example.org"
AT = datetime(2026, 3, 4, tzinfo=UTC)


class Loose(EmbeddedConnector):
    """Gives whatever there is, as platforms with fuzzy matching do."""

    def find_contacts_by_email(self, email: str, **_: Any) -> list[ContactRecord]:
        return [ContactRecord(each, email=each) for each in (BOB, f"x{ADA}", "", ADA.upper())]

    def find_contacts_by_phone(self, phone: str, **_: Any) -> list[ContactRecord]:
        numbers = ["+442127365000", "7365000", "", "(212) 736-5000"]
        return [ContactRecord(each or "none", phones=(each,)) for each in numbers]

    def find_accounts(self, name: str, **_: Any) -> list[AccountRecord]:
        return [AccountRecord(each, each) for each in ("Acme Two", "ACME Inc.", "Akme", "Acme")]

    def find_cases(self, email: str, **_: Any) -> list[CaseRecord]:
        return [CaseRecord(each, contact_email=each, created_at=AT) for each in (BOB, "", ADA)]

    def find_registrations(self, email: str, **_: Any) -> list[RegistrationRecord]:
        return [
            RegistrationRecord("own", email=ADA, contact_email=BOB),
            RegistrationRecord("contacts", email=BOB, contact_email=ADA),
            RegistrationRecord("others", email=BOB, contact_email=BOB),
            RegistrationRecord("nobodys"),
        ]


@pytest.fixture
def bot(redis: Any, monkeypatch: pytest.MonkeyPatch) -> Bot:
    monkeypatch.setitem(REGISTRY, "embedded", Loose)
    return bot_of(factories.organization())


@pytest.mark.promise("mapping-6")
@pytest.mark.parametrize(
    ("action", "fields", "key", "found"),
    [
        ("Confirm_Contact", {"email": ADA}, "contactID", [ADA.upper()]),
        ("Confirm_Contact_Phone", {"phone": "+12127365000"}, "contactID", ["(212) 736-5000"]),
        ("Confirm_Account", {"accountName": "Acme"}, "AccountID", ["Acme", "ACME Inc."]),
        ("Confirm_Case", {"email": ADA}, "caseID", [ADA]),
        ("Confirm_Registration", {"email": ADA}, "registrationID", ["own", "contacts"]),
    ],
    ids=["email", "phone", "account", "case", "registration"],
)
def test_loose_matches_are_left_out(bot, action, fields, key, found):
    assert [record[key] for record in bot.confirm(action, **fields)] == found
