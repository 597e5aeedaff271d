"""What is asked of Salesforce: how many calls, and what they find."""

import pytest

from rme.crm.connectors.base import Deadline
from rme.crm.connectors.salesforce.connector import quote
from tests.crm import remote
from tests.crm.conformance import INJECTIONS
from tests.fakes import soql
from tests.fakes.salesforce import identifier


@pytest.mark.promise("salesforce-5")
@pytest.mark.parametrize("text", [*INJECTIONS, "a\nb\r\tc\b\f", "\\'", "ü\u2028😀"])
def test_text_quoted_in_a_query_is_read_back_unchanged(text):
    query = soql.query(f"SELECT Id FROM Account WHERE Name = {quote(text)}")
    assert query.test(lambda path: text)
    assert not query.test(lambda path: f"{text}x")


@pytest.mark.promise("contacts-1")
def test_five_hundred_contacts_are_three_calls(server):
    made = [server.add("Contact", LastName=f"P {i}", Phone="(212) 736-5000") for i in range(500)]
    connector = remote.salesforce(server)
    found = connector.get_contacts(made, deadline=Deadline.after(8))
    assert set(found) == set(made)
    assert len(server.asked) == 3


def test_misspelled_id_matches_no_contact(server):
    ada = server.add("Contact", LastName="Lovelace")
    given = [ada[:15], ada.lower(), f"{ada} ", f"{ada[:17]}Z", identifier("003", 999)]
    assert remote.salesforce(server).get_contacts(given) == {}
    assert list(remote.salesforce(server).get_contacts([ada])) == [ada]


def test_a_parent_may_be_named_by_its_short_id(server):
    acme = server.add("Account", Name="Acme")
    found = remote.salesforce(server).get_records([acme[:15]], deadline=Deadline.after(4))
    assert {key: (each["type"], each["id"]) for key, each in found.items()} == {
        acme[:15]: ("Account", acme)
    }


def test_records_with_known_prefixes_are_requested_only_from_their_objects(server):
    acme = server.add("Account", Name="Acme")
    remote.salesforce(server).get_records([acme], deadline=Deadline.after(4))
    assert len(server.asked) == 1


@pytest.mark.promise("look-ups-2", "salesforce-6")
@pytest.mark.parametrize(
    "stored", ["(212) 736-5000", "212.736.5000", "+1 212 736 5000", "1-212-736-5000"]
)
def test_phone_is_found_in_any_spelling(server, stored):
    ada = server.add("Contact", LastName="Lovelace", HomePhone=stored)
    server.add("Contact", LastName="Other", Phone="+49 212 7365000")  # ends alike
    found = remote.salesforce(server).find_contacts_by_phone(
        "+12127365000", limit=5, deadline=Deadline.after(4)
    )
    assert [(each.id, each.phone) for each in found] == [(ada, "+12127365000")]


@pytest.mark.promise("look-ups-7")
@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Zürich Söhne AG", "zurich sohne"),
        ("Zurich Sohne", "Zürich Söhne GmbH"),
        ("A.C.M.E. Corp.", "acme"),
        ("Acme-Corp", "ACME CORP"),
        ("Œuvres & Cie", "Œuvres & Cie"),
    ],
)
def test_an_account_is_found_by_its_folded_name(server, stored, asked):
    there = server.add("Account", Name=stored)
    server.add("Account", Name="Zebra Research Chemicals House")
    found = remote.salesforce(server).find_accounts(asked, limit=5, deadline=Deadline.after(4))
    assert [each.id for each in found] == [there]


@pytest.mark.promise("salesforce-6", "mapping-6")
def test_loose_matches_do_not_crowd_out_the_right_one(server):
    for i in range(120):
        server.add("Contact", LastName=f"P{i}", Phone="+44 12127365000")
    ada = server.add("Contact", LastName="Lovelace", Phone="+12127365000")
    for i in range(20):
        server.add("Contact", LastName=f"Q{i}", Phone="+44 12127365000")
    found = remote.salesforce(server).find_contacts_by_phone(
        "+12127365000", limit=1, deadline=Deadline.after(4)
    )
    assert [each.id for each in found] == [ada]
