"""Salesforce's errors, and what a broken server comes to."""

import pytest

from rme.crm.connectors.base import (
    Deadline,
    Duplicate,
    MappingWrong,
    PlatformAway,
    PlatformLimit,
    PlatformRefused,
    PlatformSlow,
    UnknownParent,
)
from rme.crm.connectors.records import NewCase, NewContact
from rme.crm.connectors.salesforce.connector import SalesforceConnector
from rme.transport import AddressPolicy, Transport
from tests.crm import remote
from tests.crm.breaking import BREAKS, seconds_for
from tests.crm.connectors.errors_scene import find, make
from tests.fakes.http1 import respond
from tests.fakes.salesforce import Refused, identifier
from tests.stopwatch import Stopwatch

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


@pytest.mark.promise("bot-failures-19", "salesforce-7")
@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_reported_without_the_platforms_text(server, case):
    refusal, reading, making = ERRORS[case]
    connector = remote.salesforce(server)
    server.refuse = [refusal, refusal]
    with pytest.raises(reading):
        find(connector)
    server.refuse = [refusal]
    with pytest.raises(making):
        make(connector)
    assert server.rows["Account"] == []


@pytest.mark.promise("salesforce-8")
@pytest.mark.parametrize("name", ["duplicateResult", "duplicateResut"])
def test_a_duplicate_is_reported_with_its_id(server, name):
    there = identifier("001", 7)
    result = {"matchResults": [{"matchRecords": [{"record": {"Id": there}}]}]}
    server.refuse = [Refused(400, "DUPLICATES_DETECTED", "Use one of these?", **{name: result})]
    with pytest.raises(Duplicate) as raised:
        make(remote.salesforce(server))
    assert raised.value.id == there


@pytest.mark.promise("salesforce-8")
@pytest.mark.parametrize(
    ("refusal", "known_id"),
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
def test_a_duplicate_is_reported_as_far_as_the_platform_names_it(server, refusal, known_id):
    server.refuse = [refusal]
    with pytest.raises(Duplicate) as raised:
        make(remote.salesforce(server))
    assert raised.value.id == known_id


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (NewContact("L", account_id=identifier("001", 9)), "account_id"),
        (NewCase("S", "I", contact_id=identifier("003", 9)), "contact_id"),
        (NewContact("L", account_id="Robert'); --"), "account_id"),
    ],
    ids=["contact", "case", "no id"],
)
def test_unknown_parent_is_reported_with_its_field(server, new, field):
    with pytest.raises(UnknownParent) as raised:
        remote.salesforce(server).create(new, deadline=Deadline.after(4))
    assert raised.value.field == field


@pytest.mark.promise("mapping-7")
def test_non_public_address_is_not_called(server):
    known = remote.salesforce(server).platform
    connector = SalesforceConnector("acme", platform=known, transport=Transport(AddressPolicy()))
    with pytest.raises(PlatformAway):
        find(connector)
    assert server.connections == 0


# --- broken servers -----------------------------------------------------------------------------
@pytest.mark.promise("salesforce-10")
@pytest.mark.parametrize("name", BREAKS)
def test_broken_server_raises_its_error_in_time(server, name):
    connector = remote.salesforce(server)
    find(connector)  # with a session, so that the call itself meets it
    answer, reading, making = BREAKS[name]
    server.answer = answer
    with Stopwatch() as watch:
        with pytest.raises(reading):
            find(connector, seconds_for(name))
        with pytest.raises(PlatformAway if name == "redirect" else making):
            make(connector, seconds_for(name))
    assert watch.seconds < 7  # each waits for ten where nobody ends it


@pytest.mark.promise("salesforce-10")
@pytest.mark.parametrize("name", BREAKS)
def test_broken_log_in_creates_nothing(server, name):
    server.answer = BREAKS[name][0]
    slow = name in ("hangs", "drips")
    with pytest.raises(PlatformSlow if slow else PlatformAway):
        make(remote.salesforce(server), 1.0)


@pytest.mark.promise("salesforce-10")
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
def test_answer_of_unexpected_shape_is_an_error(server, body):
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
