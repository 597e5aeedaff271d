"""Salesforce's errors, its sessions, and what a broken server is."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from rme.core.transport import AddressPolicy, Transport
from rme.crm.connectors.base import (
    Deadline,
    Duplicate,
    MappingWrong,
    NewAccount,
    NewCase,
    NewContact,
    PlatformAway,
    PlatformLimit,
    PlatformRefused,
    PlatformSlow,
    UnknownParent,
)
from rme.crm.connectors.salesforce import Salesforce, quote
from tests.crm import remote
from tests.crm.breaking import BREAKS
from tests.crm.conformance import INJECTIONS
from tests.fakes import soql
from tests.fakes.http1 import respond
from tests.fakes.salesforce import Refused, SalesforceServer, identifier


@pytest.fixture
def server() -> Iterator[SalesforceServer]:
    with SalesforceServer() as running:
        yield running


def find(connector: Salesforce, seconds: float = 4.0) -> Any:
    return connector.find_contacts_by_email(
        "a@b.example", limit=1, deadline=Deadline.after(seconds)
    )


def make(connector: Salesforce, seconds: float = 4.0) -> str:
    return connector.create(NewAccount("Acme"), deadline=Deadline.after(seconds))


# --- errors -------------------------------------------------------------------------------------
ERRORS = {
    "quota": (Refused(403, "REQUEST_LIMIT_EXCEEDED"), PlatformLimit, PlatformLimit),
    "switched off": (Refused(403, "API_DISABLED_FOR_ORG"), PlatformRefused, PlatformRefused),
    "no field": (Refused(400, "INVALID_FIELD"), MappingWrong, MappingWrong),
    "no object": (Refused(400, "INVALID_TYPE"), MappingWrong, MappingWrong),
    "a rule": (Refused(400, "FIELD_CUSTOM_VALIDATION_EXCEPTION"), MappingWrong, MappingWrong),
    "slow query": (Refused(400, "QUERY_TIMEOUT"), PlatformSlow, PlatformSlow),
    "locked": (Refused(400, "UNABLE_TO_LOCK_ROW"), PlatformAway, PlatformAway),
    "maintenance": (Refused(503, "SERVER_UNAVAILABLE"), PlatformAway, PlatformAway),
    "a fault": (Refused(500, "UNKNOWN_EXCEPTION"), PlatformAway, PlatformSlow),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_told_without_the_platforms_words(server, case):
    refusal, reading, making = ERRORS[case]
    connector = remote.salesforce(server)
    server.refuse = [refusal, refusal]
    with pytest.raises(reading):
        find(connector)
    server.refuse = [refusal]
    with pytest.raises(making):
        make(connector)
    assert server.rows["Account"] == []


@pytest.mark.parametrize("name", ["duplicateResult", "duplicateResut"])
def test_a_duplicate_is_told_with_its_id(server, name):
    there = identifier("001", 7)
    result = {"matchResults": [{"matchRecords": [{"record": {"Id": there}}]}]}
    server.refuse = [Refused(400, "DUPLICATES_DETECTED", "Use one of these?", **{name: result})]
    with pytest.raises(Duplicate) as raised:
        make(remote.salesforce(server))
    assert raised.value.id == there


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (Refused(400, "DUPLICATES_DETECTED", duplicateResult={"matchResults": []}), ""),
        (Refused(400, "DUPLICATES_DETECTED", duplicateResult=None), ""),
        (
            Refused(
                400,
                "DUPLICATE_VALUE",
                "duplicate value found: X__c duplicates value on record with id: 001aB0000000007",
            ),
            "001aB0000000007",
        ),
    ],
    ids=["none", "null", "unique field"],
)
def test_a_duplicate_is_told_as_far_as_it_is_said(server, refusal, told):
    server.refuse = [refusal]
    with pytest.raises(Duplicate) as raised:
        make(remote.salesforce(server))
    assert raised.value.id == told


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (NewContact("L", account_id=identifier("001", 9)), "account_id"),
        (NewCase("S", "I", contact_id=identifier("003", 9)), "contact_id"),
        (NewContact("L", account_id="Robert'); --"), "account_id"),
    ],
    ids=["contact", "case", "no id"],
)
def test_a_parent_that_is_not_there_is_named(server, new, field):
    with pytest.raises(UnknownParent) as raised:
        remote.salesforce(server).create(new, deadline=Deadline.after(4))
    assert raised.value.field == field


# --- sessions -----------------------------------------------------------------------------------
def test_a_session_serves_many_connectors(server):
    for _ in range(3):
        find(remote.salesforce(server))
    assert server.logins == [
        {"grant_type": "client_credentials", "client_id": "app", "client_secret": "secret"}
    ]


def test_a_session_that_has_ended_is_followed_by_one_log_in(server):
    connector = remote.salesforce(server)
    find(connector)
    server.sessions.clear()
    made = make(connector)
    assert [row["Id"] for row in server.rows["Account"]] == [made]
    assert len(server.logins) == 2


def test_a_session_that_is_never_taken_is_refused_after_one_log_in(server):
    connector = remote.salesforce(server)
    server.refuse = [Refused(401, "INVALID_SESSION_ID") for _ in range(5)]
    with pytest.raises(PlatformRefused):
        find(connector)
    assert (len(server.logins), len(server.refuse)) == (2, 3)


def test_threads_may_log_in_at_once(server):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: find(remote.salesforce(server)), range(16)))
    assert found == [[]] * 16
    assert len(server.logins) <= 8


def test_a_private_key_signs_an_assertion(server):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    audience = "https://test.salesforce.com"
    settings = {"private_key": pem, "username": "bot@acme.example", "audience": audience}
    find(remote.salesforce(server, **settings))
    (form,) = server.logins
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    claims = jwt.decode(form["assertion"], key.public_key(), ["RS256"], audience=audience)
    assert (claims["iss"], claims["sub"]) == ("app", "bot@acme.example")
    assert 0 < claims["exp"] - time.time() <= 180


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"client_secret": "wrong"}, PlatformRefused),
        ({"private_key": "no key"}, PlatformRefused),
        ({"address": "https://127.0.0.1:1"}, PlatformAway),
        ({"address": "file:///etc/passwd"}, PlatformAway),
        ({"address": ""}, PlatformAway),
    ],
    ids=["secret", "key", "nobody there", "scheme", "no address"],
)
def test_wrong_settings_fail_as_what_they_are(server, settings, expected):
    with pytest.raises(expected):
        find(remote.salesforce(server, **settings))


@pytest.mark.parametrize(
    "where",
    ["http://169.254.169.254/", "https://169.254.169.254", "https://", "javascript:1", None, 7],
    ids=["http", "metadata", "no host", "scheme", "null", "number"],
)
def test_a_log_in_cannot_lead_anywhere_else(server, where):
    given = server._log_in
    server._log_in = lambda form: (200, {**given(form)[1], "instance_url": where})
    with pytest.raises(PlatformAway):
        find(remote.salesforce(server))


def test_an_address_that_is_not_public_is_not_called(server):
    known = remote.salesforce(server).platform
    connector = Salesforce("acme", platform=known, transport=Transport(AddressPolicy()))
    with pytest.raises(PlatformAway):
        find(connector)
    assert server.connections == 0


# --- broken servers -----------------------------------------------------------------------------
@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_server_ends_in_time_as_what_it_is(server, name):
    connector = remote.salesforce(server)
    find(connector)  # with a session, so that the call itself meets it
    answer, reading, making = BREAKS[name]
    server.answer = answer
    began = time.monotonic()
    with pytest.raises(reading):
        find(connector, 1.0)
    with pytest.raises(PlatformAway if name == "redirect" else making):
        make(connector, 1.0)
    assert time.monotonic() - began < 2.6


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_log_in_makes_nothing(server, name):
    server.answer = BREAKS[name][0]
    slow = name in ("hangs", "drips")
    with pytest.raises(PlatformSlow if slow else PlatformAway):
        make(remote.salesforce(server), 1.0)


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"7",
        b"null",
        b'"x"',
        b'{"records": 7, "done": true}',
        b'{"records": [7], "done": 1}',
        b"9" * 5000,
    ],
    ids=["list", "number", "null", "text", "no records", "no rows", "huge number"],
)
def test_an_answer_of_another_shape_is_none(server, body):
    connector = remote.salesforce(server)
    find(connector)
    server.answer = lambda connection, seen: respond(connection, 200, body)
    with pytest.raises(PlatformAway):
        find(connector)
    with pytest.raises(PlatformSlow):
        make(connector)


def test_a_session_refused_in_html_is_a_refusal(server):
    connector = remote.salesforce(server)
    find(connector)
    server.answer = lambda connection, seen: respond(connection, 401, b"<html>no</html>")
    with pytest.raises(PlatformRefused):
        find(connector)


# --- queries ------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", [*INJECTIONS, "a\nb\r\tc\b\f", "\\'", "ü\u2028😀"])
def test_a_text_in_a_query_is_read_back_as_it_was(text):
    query = soql.query(f"SELECT Id FROM Account WHERE Name = {quote(text)}")
    assert query.test(lambda path: text)
    assert not query.test(lambda path: f"{text}x")


def test_five_hundred_contacts_are_three_calls(server):
    made = [server.add("Contact", LastName=f"P {i}", Phone="(212) 736-5000") for i in range(500)]
    connector = remote.salesforce(server)
    found = connector.get_contacts(made, deadline=Deadline.after(8))
    assert set(found) == set(made)
    assert len(server.asked) == 3


def test_an_id_of_another_spelling_is_nobodys(server):
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


def test_records_of_objects_with_known_ids_are_asked_of_those_alone(server):
    acme = server.add("Account", Name="Acme")
    remote.salesforce(server).get_records([acme], deadline=Deadline.after(4))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "stored", ["(212) 736-5000", "212.736.5000", "+1 212 736 5000", "1-212-736-5000"]
)
def test_a_phone_is_found_however_it_is_written(server, stored):
    ada = server.add("Contact", LastName="Lovelace", HomePhone=stored)
    server.add("Contact", LastName="Other", Phone="+49 212 7365000")  # ends alike
    found = remote.salesforce(server).find_contacts_by_phone(
        "+12127365000", limit=5, deadline=Deadline.after(4)
    )
    assert [(each.id, each.phone) for each in found] == [(ada, "+12127365000")]


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
