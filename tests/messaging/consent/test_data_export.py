"""Data export: everything that is stored about a person."""

import json
import stat

import pytest
from django.core.management import CommandError, call_command

from messaging.consent import data_export, ledger
from messaging.models import ConsentEntryInTest, PrivacyRequest, Suppression
from rme.core.db import clock
from tests import audited, factories
from tests.messaging.consent.erasure_scene import SECRET, fill, run

pytestmark = pytest.mark.django_db


@pytest.mark.promise("embedded-6")
def test_export_contains_all_data_of_one_person_only(api, org, ada, bob):
    alone, both = fill(api, org, ada, bob)
    found = json.loads(run("export_contact", str(ada.pk), organization=org.pk))
    assert {name: len(rows) for name, rows in found.items() if isinstance(rows, list)} == {
        "cases": 1,
        "registrations": 1,
        "speakers": 0,
        "exhibitors": 0,
        "devices": 1,
        "consent": 1,
        "suppressions": 2,
        "addressOptOuts": 0,
        "testConsent": 0,
        "testSuppressions": 0,
        "requests": 0,
        "audit": 2,
        "changes": 1,
        "messages": 2,
    }
    assert found["contact"]["email"] == f"{SECRET}@simulator.rme.test"
    assert [row["id"] for row in found["messages"]] == [alone, both]
    assert found["cases"][0]["comments"] == [SECRET]
    assert [(row["action"], row["changes"]) for row in found["audit"]] == [
        ("CHANGED", [["email", "", SECRET]])
    ] * 2
    assert "olga" not in json.dumps(found)  # who did it is not the person's data
    assert audited.summaries(action="EXPORTED") == [("command-line", "EXPORTED", "all of a person")]
    assert list(PrivacyRequest.objects.values_list("kind", "state", "contact_id")) == [
        ("EXPORT", "DONE", str(ada.pk))
    ]
    single, shared = found["messages"]
    assert single["content"]["variables"] == {"note": SECRET}
    assert single["metadata"] == {"order": SECRET}
    assert [event["type"] for event in single["events"]] == ["accepted", "sent", "delivered"]
    assert [attempt["reason"] for attempt in single["attempts"]] == [SECRET]
    assert shared["content"]["recipients"] == {shared["delivery"]["id"]: {"nick": SECRET}}
    text = json.dumps(found)
    assert "simulator-" not in json.dumps(found["devices"])  # the token is a credential
    assert [name for name in ("Bobby", "bob@", "by phone", str(bob.pk)) if name in text] == []


def test_export_file_is_readable_by_its_owner_only(api, org, ada, tmp_path):
    path = tmp_path / "ada.json"
    assert run("export_contact", str(ada.pk), organization=org.pk, output=path) == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_bytes())["contact"]["id"] == str(ada.pk)
    with pytest.raises(CommandError, match="File exists"):
        call_command("export_contact", str(ada.pk), organization=org.pk, output=path)


def test_export_has_numbers_beyond_64_bits(org, ada):
    decision = ledger.ConsentDecision(
        str(ada.pk), "EMAIL", "MARKETING", "OPTED_IN", "API", clock.now()
    )
    [entry] = ledger.record_in_test(org.pk, [decision])
    ConsentEntryInTest.objects.filter(pk=entry.pk).update(evidence={"number": 10**30})
    exported = data_export.export_contact(org.pk, str(ada.pk))
    assert exported["testConsent"][0]["evidence"] == {"number": 1e30}


def test_export_of_an_address_has_all_its_spellings(org, ada):
    for owner in (org, factories.organization("other")):
        Suppression.objects.create(
            organization=owner, channel="SMS", address="+5511987654321", reason="STOP"
        )
    exported = data_export.export_address(org.pk, "+551187654321")
    assert [row["address"] for row in exported["suppressions"]] == ["+5511987654321"]
    assert data_export.export_address(org.pk, "+551187654322") is None
