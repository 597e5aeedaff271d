"""Requests for data exports and erasures: their deadline, who decides, what is left of them."""

import io
import json
import zipfile
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.consent import erasure
from messaging.consent.privacy import answers, requests
from messaging.consent.privacy.requests import NewRequest, PrivacyRequestFilter
from messaging.consent.tasks import answer_privacy_requests
from messaging.delivery import claims
from messaging.models import Delivery, PrivacyFile, PrivacyRequest, Suppression
from messaging.reports import configuration
from rme.core import errors
from rme.core.db import clock
from rme.crm.models import Contact
from rme.tenants.audit import Actor
from tests import audited, factories
from tests.messaging.consent.erasure_scene import SECRET, fill
from tests.messaging.consent.test_erasure import stored
from tests.rest import message

pytestmark = pytest.mark.django_db
OLGA = Actor(name="olga")


def opened(org, kind, contact=None, **fields):
    own = {"contact_id": str(contact.pk)} if contact else {}
    return requests.open_request(org.pk, NewRequest(kind, **own, **fields), OLGA)


def carried_out(row):
    """Order a request, let a worker do it, and return it."""
    assert requests.order(row, OLGA)
    answer_privacy_requests()
    row.refresh_from_db()
    return row


def content_of(row):
    with zipfile.ZipFile(io.BytesIO(requests.download(row, OLGA))) as archive:
        return json.loads(archive.read("person.json"))


def test_an_export_is_stored_downloaded_and_expires(api, org, ada, bob, settings):
    fill(api, org, ada, bob)
    row = opened(org, "EXPORT", ada, note=f"mail of {SECRET}")
    assert requests.file_of(row) is None
    carried_out(row)
    assert (row.state, row.note) == ("DONE", "")
    assert "consent: 1" in row.result
    found = content_of(row)
    assert found["contact"]["id"] == str(ada.pk)
    assert [each["state"] for each in found["requests"]] == ["RUNNING"]
    assert requests.file_of(row).expires_at - row.finished_at <= timedelta(days=7, minutes=1)
    told = [each for each in audited.summaries() if each[0] == "olga"]
    assert [each[1:] for each in told[-4:]] == [
        ("ADDED", ""), ("ORDERED", ""), ("EXPORTED", "all of a person"),
        ("EXPORTED", "file downloaded"),
    ]  # fmt: skip
    PrivacyFile.objects.update(expires_at=clock.now())
    assert requests.download(row, OLGA) is None
    answer_privacy_requests()
    assert not PrivacyFile.objects.exists()


def test_an_erasure_leaves_a_record_without_the_person(api, org, ada, bob):
    fill(api, org, ada, bob)
    exported = carried_out(opened(org, "EXPORT", ada, note=SECRET))
    refused = opened(org, "EXPORT", ada, note=SECRET)
    assert requests.refuse(refused, f"{SECRET} has it already", OLGA)
    row = carried_out(opened(org, "ERASURE", ada, note=SECRET))
    assert (row.state, row.contact_id, row.note) == ("DONE", str(ada.pk), "")
    assert "contacts: 1" in row.result
    assert requests.download(exported, OLGA) is None
    assert SECRET.lower() not in stored().lower()
    assert not Contact.objects.filter(pk=ada.pk).exists()


def test_messages_being_sent_are_erased_by_a_later_run(api, org, ada):
    api.send(message(ada))
    claims.claim(org.pk, "EMAIL", 0)
    row = carried_out(opened(org, "ERASURE", ada))
    waits = "Waits for 1 that are being sent. contacts: 1, audit: 2"
    assert (row.state, row.result) == ("RUNNING", waits)
    Delivery.objects.update(status="SENT", due_at=None)
    answer_privacy_requests()
    row.refresh_from_db()
    assert (row.state, row.result) == (
        "DONE", "contacts: 1, audit: 2; contents: 1, deliveries: 1",
    )  # fmt: skip


def carried_out_while(row, change):
    """Carry an export out, and make a change between its reading and its storing."""
    assert requests.order(row, OLGA)
    changes = [change]

    def change_before_the_lock(execute, sql, *arguments):
        if "FOR UPDATE" in sql and PrivacyRequest._meta.db_table in sql and changes:
            changes.pop()()
        return execute(sql, *arguments)

    with connection.execute_wrapper(change_before_the_lock):
        is_done = answers.carry_out(row.pk)
    assert not changes
    assert not PrivacyFile.objects.exists()
    return is_done


@pytest.mark.parametrize("by_address", [False, True], ids=["by contact", "by address"])
def test_erasure_during_an_export_leaves_no_file(org, ada, by_address):
    row = opened(org, "EXPORT", address=ada.email) if by_address else opened(org, "EXPORT", ada)
    assert not carried_out_while(row, lambda: erasure.erase(org.pk, str(ada.pk)))
    assert answers.carry_out(row.pk)  # what is left: the request itself, and the audit's ids
    assert ada.email not in json.dumps(content_of(row))


def test_organization_deleted_during_an_export_leaves_nothing(org, ada):
    row = opened(org, "EXPORT", ada)
    assert carried_out_while(row, org.delete)
    assert not PrivacyRequest.objects.exists()
    assert answers.carry_out(row.pk)  # a worker that had chosen it before


def test_address_without_a_contact_is_stored_as_a_digest(org):
    address = "ghost@people.example"
    Suppression.objects.create(organization=org, channel="EMAIL", address=address, reason="STOP")
    assert requests.subject_of(org.pk, f" {address}") == requests.Subject([], address)
    export = carried_out(opened(org, "EXPORT", address=address))
    assert (export.result, export.address) == ("suppressions: 1", "")
    assert [each["reason"] for each in content_of(export)["suppressions"]] == ["STOP"]
    erased = carried_out(opened(org, "ERASURE", address=address))
    assert erased.result == "No contact has this address. Its suppressions stay."
    Suppression.objects.all().delete()
    assert address not in stored()
    found, _ = requests.page(org.pk, PrivacyRequestFilter(address=address), limit=5)
    assert found == [erased, export]
    gone = carried_out(opened(org, "EXPORT", address=address))
    assert (gone.result, requests.file_of(gone)) == ("Nothing is stored.", None)


def test_contact_created_after_the_request_is_found_by_address(org):
    row = opened(org, "ERASURE", address="ada@simulator.rme.test")
    ada = factories.contact(org)
    carried_out(row)
    assert (row.contact_id, row.address) == (str(ada.pk), "")
    assert not Contact.objects.exists()


def test_a_request_is_opened_once_and_decided_once(org, ada):
    row = opened(org, "EXPORT", ada)
    with pytest.raises(errors.InvalidPayload) as refused:
        opened(org, "EXPORT", ada)
    assert refused.value.details[0].message == "was requested already and is still open"
    opened(org, "ERASURE", ada)
    with pytest.raises(errors.InvalidPayload):
        opened(org, "EXPORT", note="", address="x", requested_at=clock.now() + timedelta(hours=1))
    assert requests.refuse(row, "no proof of identity", OLGA)
    assert not requests.refuse(row, "again", OLGA)
    assert not requests.order(row, OLGA)
    assert ("olga", "REFUSED", "") in audited.summaries()


def test_overdue_request_is_a_finding_until_it_is_answered(org, ada, settings):
    settings.PRIVACY_REQUEST_DAYS = 10
    row = opened(org, "EXPORT", ada, requested_at=clock.now() - timedelta(days=11))
    opened(org, "ERASURE", ada, requested_at=clock.now() - timedelta(days=9))
    assert row.due_at - row.requested_at == timedelta(days=10)
    found = [each for each in configuration.findings([org.pk]) if "PRIVACY" in each.code]
    assert [(each.code, each.message) for each in found] == [
        (
            "PRIVACY_REQUEST_OVERDUE",
            "1 privacy request is overdue.",
        )
    ]
    late, _ = requests.page(org.pk, PrivacyRequestFilter(overdue=True), limit=5)
    assert late == [row]
    carried_out(row)
    assert requests.overdue([org.pk]) == {}


def test_page_is_one_statement_and_the_next_one_continues(org, bob):
    made = [opened(org, "EXPORT", address=f"p{number}@people.example") for number in range(5)]
    with CaptureQueriesContext(connection) as captured:
        first, cursor = requests.page(org.pk, PrivacyRequestFilter(), limit=3)
    assert len(captured) == 1
    second, end = requests.page(org.pk, PrivacyRequestFilter(cursor=cursor), limit=3)
    assert ([*first, *second], end) == (made[::-1], None)
    assert requests.page("other", PrivacyRequestFilter(), limit=3) == ([], None)
    assert PrivacyRequest.objects.filter(state="OPEN").count() == 5
