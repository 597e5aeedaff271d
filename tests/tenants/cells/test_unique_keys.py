"""What two cells may not both have: a move, and a new organization, are refused."""

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from messaging.models import ProviderAccount
from rme.tenants.models import Move, Organization
from tests import databases
from tests.tenants.cells.two_databases import counts, move, phases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


def test_an_organization_that_comes_back_is_not_dropped_by_its_former_move(us, scene, settings):
    move()
    back = ["move_organization", "acme", "--to", "eu"]
    settings.MOVE_DATABASE_URL = databases.url_of(connection.settings_dict["NAME"])
    with us(), pytest.raises(CommandError, match="eu has rows of its former stay"):
        call_command(*back)
    settings.MOVE_DATABASE_URL, here = us.url, settings.MOVE_DATABASE_URL
    move("--drop")
    Move.objects.create(organization_id="acme", cell="us", step="DONE", since=0)
    settings.MOVE_DATABASE_URL = here
    with us():
        call_command(*back)
    assert phases(us) == ("", "MOVED")
    assert not Move.objects.exists()
    Move.objects.create(organization_id="acme", cell="us", step="DONE", since=0)
    settings.MOVE_DATABASE_URL = us.url
    with pytest.raises(CommandError, match="here again"):
        move("--drop")
    assert counts()["messaging_message"] == 4


def test_rows_of_others_are_never_replaced_or_dropped(us, scene):
    """Whatever went wrong before: an id that was given twice, a cell that was not prepared."""
    own = ProviderAccount.objects.create(
        organization_id="acme", channel="EMAIL", kind="simulator", name="own"
    )
    Move.objects.create(organization_id="acme", cell="us", step="COPYING", since=0)
    with us():
        other = Organization.objects.create(pk="acme", name="another")
    with pytest.raises(CommandError, match="another organization of that id"):
        move()
    move("--abort")
    with us():
        assert Organization.objects.get() == other
        Organization.objects.all().delete()
        other = Organization.objects.create(pk="other", name="another")
        ProviderAccount.objects.create(
            pk=own.pk, organization=other, channel="SMS", kind="simulator", name="theirs"
        )
    with pytest.raises(CommandError, match="keys of messaging_provideraccount"):
        move()
    with us():
        assert ProviderAccount.objects.get().name == "theirs"
        ProviderAccount.objects.update(public_id=own.public_id)
    move("--abort")
    with us():
        assert ProviderAccount.objects.get().name == "theirs"
    with pytest.raises(CommandError, match=f"has the provider account {own.public_id}"):
        move()
    assert phases(us) == ("", "")
