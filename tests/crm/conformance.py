"""What every connector must do, whichever its platform: run by naming a platform.

    class TestMine(Conformance):
        @pytest.fixture
        def platform(self, …) -> Platform: …

Look-ups go through `rme.crm.lookups`, as the services' do, since platforms may match loosely.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest

from rme.crm import lookups
from rme.crm.connectors.base import Connector, Deadline, PlatformSlow
from rme.crm.connectors.records import NewAccount, NewCase, NewContact

START = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
INJECTIONS = [
    "' OR '1'='1",
    "'; DROP TABLE crm_contact; --",
    '" OR ""="',
    "\\' OR Id != '",
    "%",
    "_____",
    "a' UNION SELECT Id FROM User --",
    "{x} AND FIND [y] (z) & | ! ~ * ? : ^ -",
    "Zürich & Söhne 'n' Co \\",
]


class Platform(Protocol):
    """A platform with rows: its connector, and makers that give the id of the row they made.

    Texts that are left out are empty; phones are kept as they are given.
    """

    connector: Connector

    def account(self, *, name: str, phone: str = "", website: str = "") -> str: ...
    def contact(
        self,
        *,
        last_name: str,
        first_name: str = "",
        email: str = "",
        phone: str = "",
        mobile: str = "",
        account_id: str = "",
    ) -> str: ...
    def case(self, *, subject: str, contact_id: str, closed: bool = False) -> str: ...
    def event(self, *, name: str, starts_at: datetime) -> str: ...
    def registration(
        self, *, event_id: str, name: str, email: str, contact_id: str = "", cancelled: bool = False
    ) -> str: ...
    def speaker(self, *, event_id: str, contact_id: str, session_title: str) -> str: ...
    def exhibitor(self, *, event_id: str, contact_id: str, booth: str) -> str: ...


def bounds(limit: int = 10) -> dict[str, Any]:
    return {"limit": limit, "deadline": Deadline.after(5)}


def ids_of(records: Any) -> list[str]:
    return [record.id for record in records]


class Conformance:
    """Inherit this, and say what `platform` is."""

    # --- contacts -------------------------------------------------------------------------------
    @pytest.mark.promise("look-ups-1", "salesforce-1")
    @pytest.mark.parametrize("stored", ["ada@example.org", "Ada@Example.ORG"])
    def test_a_contact_is_found_by_its_whole_address(self, platform, stored):
        account = platform.account(name="Acme")
        ada = platform.contact(
            last_name="Lovelace", first_name="Ada", email=stored, account_id=account
        )
        platform.contact(last_name="Other", email="bada@example.org")
        platform.contact(last_name="Other", email="ada@example.org.example")
        (found,) = lookups.contacts_by_email(platform.connector, "ada@example.org", **bounds())
        assert (found.id, found.name, found.email) == (ada, "Ada Lovelace", stored)
        assert (found.account_id, found.account_name) == (account, "Acme")

    @pytest.mark.promise("bot-calls-11")
    def test_the_newest_contacts_come_first(self, platform):
        made = [platform.contact(last_name="L", email="a@b.example") for _ in range(4)]
        found = lookups.contacts_by_email(platform.connector, "a@b.example", **bounds(3))
        assert ids_of(found) == made[:0:-1]

    @pytest.mark.promise("look-ups-2")
    @pytest.mark.parametrize("field", ["phone", "mobile"])
    def test_a_contact_is_found_by_any_phone(self, platform, field):
        ada = platform.contact(last_name="L", **{field: "+12127365000"})
        platform.contact(last_name="M", phone="+12127365001", mobile="+12127365002")
        (found,) = lookups.contacts_by_phone(
            platform.connector, "+12127365000", region="US", **bounds()
        )
        assert (found.id, found.phone) == (ada, "+12127365000")

    @pytest.mark.promise("embedded-2")
    def test_contacts_are_read_by_id_all_at_once(self, platform):
        made = [platform.contact(last_name=f"L{i}", mobile=f"+1212736500{i}") for i in range(3)]
        found = platform.connector.get_contacts([*made, "nobody", *INJECTIONS])
        assert {key: (each.id, each.last_name) for key, each in found.items()} == {
            key: (key, f"L{i}") for i, key in enumerate(made)
        }
        assert platform.connector.get_contacts([]) == {}

    @pytest.mark.promise("embedded-2")
    def test_records_of_any_kind_are_read_by_id(self, platform):
        account = platform.account(name="Acme")
        ada = platform.contact(last_name="L", account_id=account)
        free = platform.contact(last_name="M")
        found = platform.connector.get_records([account, ada, free, "nobody", *INJECTIONS])
        assert {key: (each["type"], each["id"]) for key, each in found.items()} == {
            account: ("Account", account),
            ada: ("Contact", ada),
            free: ("Contact", free),
        }
        assert found[ada]["account_id"] == account
        assert not found[free]["account_id"]

    # --- accounts -------------------------------------------------------------------------------
    @pytest.mark.promise("look-ups-7")
    def test_an_account_is_found_by_name_the_exact_one_first(self, platform):
        folded = platform.account(name="ACME, Inc.")
        exact = platform.account(name="Acme", phone="+12127365000")
        platform.account(name="Acme Two")
        found = lookups.accounts(platform.connector, "Acme", **bounds())
        assert ids_of(found) == [exact, folded]
        assert (found[0].name, found[0].phone) == ("Acme", "+12127365000")

    # --- cases and events -----------------------------------------------------------------------
    @pytest.mark.promise("look-ups-3")
    def test_newest_cases_come_first(self, platform):
        ada = platform.contact(last_name="L", email="ada@example.org")
        eve = platform.contact(last_name="M", email="eve@example.org")
        closed = platform.case(subject="Old", contact_id=ada, closed=True)
        still = platform.case(subject="New", contact_id=ada)
        platform.case(subject="Other", contact_id=eve)
        found = lookups.cases(platform.connector, "ada@example.org", **bounds())
        assert [(each.id, each.subject, each.is_closed, each.contact_id) for each in found] == [
            (still, "New", False, ada),
            (closed, "Old", True, ada),
        ]
        assert all(each.created_at and each.created_at.tzinfo for each in found)

    @pytest.mark.promise("look-ups-4")
    def test_registrations_of_the_newest_event_come_first(self, platform):
        ada = platform.contact(last_name="L", email="ada@example.org")
        first = platform.event(name="First", starts_at=START)
        second = platform.event(name="Second", starts_at=START + timedelta(days=1))
        own = platform.registration(
            event_id=first, name="A", email="Ada@example.org", contact_id=ada
        )
        gone = platform.registration(
            event_id=second, name="A", email="ada@example.org", cancelled=True
        )
        platform.registration(event_id=second, name="E", email="eve@example.org")
        found = lookups.registrations(platform.connector, "ada@example.org", **bounds())
        assert [(each.id, each.event_name, each.is_registered) for each in found] == [
            (gone, "Second", False),
            (own, "First", True),
        ]
        assert [each.event_start for each in found] == [START + timedelta(days=1), START]

    @pytest.mark.promise("look-ups-5")
    def test_speakers_of_a_contact_and_of_an_event(self, platform):
        ada = platform.contact(last_name="L", email="ada@example.org")
        first = platform.event(name="First", starts_at=START)
        second = platform.event(name="Second", starts_at=START + timedelta(days=1))
        one = platform.speaker(event_id=first, contact_id=ada, session_title="One")
        two = platform.speaker(event_id=second, contact_id=ada, session_title="Two")
        connector = platform.connector
        found = connector.find_speakers(ada, "", **bounds())
        assert [(each.id, each.session_title, each.event_id) for each in found] == [
            (two, "Two", second),
            (one, "One", first),
        ]
        assert ids_of(connector.find_speakers(ada, first, **bounds())) == [one]
        assert connector.find_speakers(first, "", **bounds()) == []

    @pytest.mark.promise("look-ups-6")
    def test_exhibitors_of_a_contact(self, platform):
        ada = platform.contact(last_name="L")
        event = platform.event(name="First", starts_at=START)
        row = platform.exhibitor(event_id=event, contact_id=ada, booth="B1")
        (found,) = platform.connector.find_exhibitors(ada, **bounds())
        assert (found.id, found.event_id, found.contact_id, found.booth) == (row, event, ada, "B1")
        assert platform.connector.find_exhibitors(event, **bounds()) == []

    # --- creates --------------------------------------------------------------------------------
    @pytest.mark.promise("creates-1", "creates-2", "creates-3")
    def test_created_records_are_found(self, platform):
        connector, deadline = platform.connector, Deadline.after(5)
        account = connector.create(NewAccount("Zürich & Co"), deadline=deadline)
        new = NewContact("Lovelace", "Ada", "ada@example.org", account)
        contact = connector.create(new, deadline=deadline)
        case = connector.create(NewCase("Subject", "Issue", contact, account), deadline=deadline)
        assert ids_of(lookups.accounts(connector, "zurich co", **bounds())) == [account]
        (found,) = lookups.contacts_by_email(connector, "ada@example.org", **bounds())
        assert (found.id, found.name, found.account_id) == (contact, "Ada Lovelace", account)
        (ticket,) = lookups.cases(connector, "ada@example.org", **bounds())
        assert (ticket.id, ticket.subject, ticket.issue) == (case, "Subject", "Issue")
        assert (ticket.contact_id, ticket.account_id, ticket.is_closed) == (contact, account, False)

    @pytest.mark.promise("once-3")
    @pytest.mark.parametrize(
        "new",
        [NewAccount("Acme"), NewContact("L", "A", "a@b.example"), NewCase("S", "It's \\ here")],
        ids=["account", "contact", "case"],
    )
    def test_create_with_lost_answer_is_found(self, platform, new):
        connector, deadline = platform.connector, Deadline.after(5)
        since = datetime.now(UTC) - timedelta(minutes=5)
        assert connector.find_created(new, since=since, deadline=deadline) == ""
        made = connector.create(new, deadline=deadline)
        assert connector.find_created(new, since=since, deadline=deadline) == made
        later = datetime.now(UTC) + timedelta(minutes=5)
        assert connector.find_created(new, since=later, deadline=deadline) == ""

    # --- whatever is given ----------------------------------------------------------------------
    @pytest.mark.promise("embedded-2")
    @pytest.mark.parametrize("text", INJECTIONS)
    def test_query_syntax_is_treated_as_data(self, platform, text):
        connector = platform.connector
        ada = platform.contact(last_name="L", email="ada@example.org", phone="+12127365000")
        event = platform.event(name="E", starts_at=START)
        platform.speaker(event_id=event, contact_id=ada, session_title="T")
        assert lookups.accounts(connector, text, **bounds()) == []
        assert connector.find_speakers(text, "", **bounds()) == []
        assert connector.find_speakers(ada, text, **bounds()) == []
        assert connector.find_exhibitors(text, **bounds()) == []
        for find in (lookups.contacts_by_email, lookups.cases, lookups.registrations):
            assert find(connector, "x'or'1'='1@b.example", **bounds()) == []
        made = connector.create(NewAccount(text), deadline=Deadline.after(5))
        assert [(each.id, each.name) for each in lookups.accounts(connector, text, **bounds())] == [
            (made, text)
        ]

    @pytest.mark.promise("embedded-2")
    def test_expired_deadline_stops_every_call(self, platform):
        late = Deadline.after(-1)
        with pytest.raises(PlatformSlow):
            platform.connector.find_contacts_by_email("a@b.example", limit=1, deadline=late)
        with pytest.raises(PlatformSlow):
            platform.connector.create(NewAccount("Acme"), deadline=late)
