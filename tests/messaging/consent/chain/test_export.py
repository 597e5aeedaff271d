"""The ledger as a file: all that is needed to verify the chain elsewhere."""

import csv
import hashlib
import json

import orjson
import pytest

from messaging.consent import ledger
from messaging.consent.chain import export
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorded(org):
    other = factories.organization("other")
    for owner in (org, other):
        made = [
            ledger.ConsentDecision(
                name, "EMAIL", "NEWS", "OPTED_IN", "API", None, {"note": '=1, "é"\n2'}, "olga"
            )
            for name in ("ada", "bob")
        ]
        ledger.record(owner.pk, made)
    ledger.erase(org.pk, "bob")


def test_each_entry_is_a_line_and_the_chain_can_be_verified_with_it(org, recorded):
    lines = [json.loads(line) for line in export.json_lines(org.pk)]
    assert [line["contactId"] for line in lines] == ["ada", ""]
    assert lines[0]["evidence"] == {"note": '=1, "é"\n2'}
    assert list(lines[1]["evidence"]) == ["erased"]
    seal = hashlib.sha256(orjson.dumps(["ada", [["note", '=1, "é"\n2']]])).hexdigest()
    covered = {
        "id": lines[0]["id"],
        "organization_id": org.pk,
        **{name: lines[0][name] for name in ("channel", "category", "status", "source")},
        "occurred_at": lines[0]["occurredAt"],
        "recorded_at": lines[0]["recordedAt"],
        "recorded_by": "olga",
        "seal": seal,
    }
    assert lines[0]["previous"] == ""
    text = orjson.dumps(covered, option=orjson.OPT_SORT_KEYS)
    assert hashlib.sha256(text).hexdigest() == lines[0]["digest"] == lines[1]["previous"]


def test_csv_has_the_same_entries(org, recorded):
    header, *rows = csv.reader("".join(export.csv(org.pk)).splitlines())
    assert header == list(export.COLUMNS)
    lines = [json.loads(line) for line in export.json_lines(org.pk)]
    assert [row[0] for row in rows] == [line["id"] for line in lines]
    assert [json.loads(row[6]) for row in rows] == [line["evidence"] for line in lines]
