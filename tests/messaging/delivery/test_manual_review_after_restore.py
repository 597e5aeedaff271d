"""What is held after a restore to a moment in the past."""

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.delivery import manual_review
from messaging.models import Delivery
from rme.core.db import clock
from tests import factories
from tests.rest import events, message, work

pytestmark = pytest.mark.django_db


def run(*arguments):
    out = io.StringIO()
    call_command("hold_after_restore", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def rows(api, org):
    """Make a delivery in each status, due before and after the moment; return them by both."""
    now = clock.now()
    moments = {"before": now - timedelta(hours=1), "after": now + timedelta(hours=1)}
    found = {}
    for status in ("ACCEPTED", "SCHEDULED", "SENDING", "UNKNOWN", "SENT"):
        for when, due_at in moments.items():
            sent = api.send(message(factories.contact(org))).json()["messageId"]
            Delivery.objects.filter(message_id=sent).update(status=status, due_at=due_at)
            found[status, when] = sent
    return found


def states(rows):
    """Return each delivery's status, and whether it is due at any time."""
    kept = {
        str(row.message_id): (row.status, row.due_at is not None) for row in Delivery.objects.all()
    }
    return {key: kept[message_id] for key, message_id in rows.items()}


def test_only_due_messages_are_held(rows):
    until = clock.now().isoformat()
    before = states(rows)
    counted = run("--until", until)
    assert states(rows) == before
    assert [line.split() for line in counted.splitlines()[:-1]] == [
        ["acme", status, "1"] for status in ("ACCEPTED", "SCHEDULED", "SENDING", "SENT", "UNKNOWN")
    ]
    assert run("--until", until, "--yes").splitlines()[-1] == "Held: 5"
    held = {key: ("UNKNOWN", False) for key in rows if key[1] == "before"}
    held["SENT", "before"] = ("SENT", False)
    assert states(rows) == before | held
    assert events(rows["ACCEPTED", "before"])[-1] == "deferred"
    assert run("--until", until, "--yes") == "Held: 0\n"


def test_messages_held_after_a_restore_can_be_decided(api, org):
    sent = api.send(message(factories.contact(org))).json()["messageId"]
    run("--until", clock.now().isoformat(), "--yes")
    work()
    assert api.get(sent)["status"] == "UNKNOWN"
    call_command(
        *("decide_held", "--organization", org.pk, "--send-again", "--reason", "not in its log"),
        stdout=io.StringIO(),
    )
    work()
    assert api.get(sent)["status"] in ("SENT", "DELIVERED")


@pytest.mark.parametrize("count", [1, 3])
def test_the_number_of_statements_does_not_depend_on_the_number_held(api, org, count):
    for _ in range(count):
        api.send(message(factories.contact(org)))
    with CaptureQueriesContext(connection) as captured:
        held = manual_review.hold_doubtful(clock.now(), "restored")
    assert (held.total(), len(captured)) == (count, 23)


@pytest.mark.parametrize("until", ["2100-01-01T00:00:00Z", "2026-01-01T00:00:00", "then"])
def test_invalid_moment_is_rejected(until):
    with pytest.raises(CommandError):
        run("--until", until, "--yes")
