"""SMPP sessions of an organization that moves: only the cell that serves it takes what arrives."""

import pytest

from messaging.feedback import callbacks, listeners
from messaging.models import Callback
from rme.cells import placements
from rme.core.placement import places
from rme.tenants.models import Placement
from rme.transport.smpp.session import TRY_AGAIN
from tests import factories
from tests.fakes.smsc import wait_for
from tests.messaging.feedback.listener_scene import account

pytestmark = pytest.mark.django_db(transaction=True)
Phase = Placement.Phase
ELSEWHERE = [Phase.ARRIVING, Phase.PAUSED, Phase.MOVED]


@pytest.fixture(autouse=True)
def cell(settings):
    settings.CELL = "eu"
    placements.forget()
    yield
    placements.forget()


def place(org, phase):
    Placement.objects.update_or_create(pk=org.pk, defaults={"phase": phase, "cell": "us"})


def look():
    listeners.open_sessions(lambda: None)


@pytest.mark.parametrize("phase", ELSEWHERE)
def test_a_stop_is_not_confirmed_where_it_would_never_be_applied(org, smsc, phase):
    account(org, smsc)
    look()
    smsc.esme()
    place(org, phase)  # and the listener has not looked since
    assert smsc.deliver(b"STOP").command_status == TRY_AGAIN
    assert not Callback.objects.exists()


@pytest.mark.parametrize("phase", ELSEWHERE)
def test_cell_binds_no_session_for_an_organization_it_does_not_serve(org, smsc, phase):
    """Another organization shows that the look is over."""
    place(org, phase)
    account(org, smsc, system_id="moving")
    account(factories.organization("other"), smsc, system_id="other")
    look()
    assert smsc.esme().system_id == "other"
    assert smsc.binds == 1


@pytest.mark.parametrize("phase", ELSEWHERE)
def test_session_of_a_moved_organization_closes_and_reopens_on_return(org, smsc, phase):
    account(org, smsc)
    look()
    smsc.esme()
    place(org, phase)
    look()
    wait_for(lambda: not smsc.sessions)
    Placement.objects.all().delete()
    look()
    assert smsc.receipt("m1") == 0
    assert smsc.binds == 2


def test_leaving_organization_still_receives_messages(org, smsc):
    place(org, Phase.LEAVING)
    account(org, smsc)
    look()
    assert smsc.deliver(b"STOP").command_status == 0
    assert callbacks.apply_due() == (0, [])  # the cell that it comes to applies it
    assert Callback.objects.count() == 1


def test_shared_log_in_stays_when_one_of_its_accounts_leaves(org, smsc):
    account(org, smsc)
    look()
    smsc.esme()
    other = factories.organization("other")
    account(other, smsc)
    look()
    place(org, Phase.MOVED)
    look()
    wait_for(lambda: (smsc.binds == 1 and not smsc.sessions) or smsc.binds == 2)
    look()
    assert smsc.receipt("m1") == 0
    assert Callback.objects.get().organization_id == other.pk


def test_the_session_of_a_deleted_account_is_closed(org, smsc):
    made = account(org, smsc)
    look()
    smsc.esme()
    made.delete()
    look()
    wait_for(lambda: not smsc.sessions)


@pytest.mark.parametrize("phase", ELSEWHERE)
def test_storing_a_callback_of_a_moved_organization_fails_despite_stale_caches(
    org, smsc, monkeypatch, phase
):
    made = account(org, smsc)
    whose = callbacks.find_account(str(made.public_id))
    assert listeners.store_received(whose, lambda: None, [b"before"])
    places().absent()
    monkeypatch.setattr(placements, "KNOWN_SECONDS", 3600.0)
    place(org, phase)
    assert not listeners.store_received(whose, lambda: None, [b"after"])
    assert Callback.objects.count() == 1
