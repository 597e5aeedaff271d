"""Rows that processes which slept write into the cell that was left."""

import pytest
from django.core.management import CommandError

from messaging.consent import ledger
from messaging.consent.ledger import ConsentDecision
from messaging.models import ConsentEntry, ProviderAccount
from rme.cells import moving, placements
from rme.tenants.models import Move
from tests.cells.two_databases import counts, move, phases, to_us

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


def opt_out(contact_id):
    """Record a decision as a process does that has looked for the organization before."""
    decision = ConsentDecision(contact_id, "EMAIL", "MARKETING", "OPT_OUT", "API", None)
    return str(ledger.record("acme", [decision])[0].pk)


@pytest.mark.parametrize("word", ["ready: both cells have the same rows", "switched"])
def test_row_written_after_the_comparison_is_reported_and_kept(us, scene, word):
    late = []

    def say(text):
        if text == word:
            late.append(opt_out("late"))
            ProviderAccount.objects.filter(name="account").update(name="changed")

    account = ProviderAccount.objects.get(name="account")
    with moving.opened(to_us(), "acme", say) as mover, pytest.raises(moving.LateRows) as error:
        mover.move(moving.MoveLimits())
    placements.forget()
    rows = [f"messaging_consententry {late[0]}", f"messaging_provideraccount {account.pk}"]
    assert all(row in str(error.value) for row in rows)
    assert str(error.value).startswith("2 rows")
    assert phases(us) == ("MOVED", "")
    with pytest.raises(CommandError, match=r"^2 rows were written here"):
        move("--drop")
    with us():
        ProviderAccount.objects.filter(name="account").update(name="changed")
        opt_out("late")
    with pytest.raises(CommandError, match=rf"^1 rows were written here.*{late[0]}"):
        move("--drop")
    assert ConsentEntry.objects.filter(contact_id="late").exists()
    move("--drop", "--late-too")
    assert not Move.objects.exists()
    assert set(counts()) <= {"tenants_auditentry", "tenants_auditvalues"}


def test_row_written_long_after_the_move_prevents_the_drop(us, scene):
    move()
    assert Move.objects.get().step == "DONE"
    late = opt_out("late")
    ProviderAccount.objects.filter(name="account").update(name="by a job")
    with pytest.raises(CommandError, match=rf"^1 rows .*messaging_consententry {late}\."):
        move("--drop")
