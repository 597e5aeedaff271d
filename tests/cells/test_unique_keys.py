"""What two cells may not both have: a move, and a new organization, are refused."""

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from messaging.models import ProviderAccount
from rme.cells import identifiers
from rme.cells.moving import people
from rme.tenants.models import Membership, Move, Organization, Placement, User
from tests import databases
from tests.cells.two_databases import counts, move, phases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


def test_returned_organization_is_not_dropped_by_its_former_move(us, scene, settings):
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


def test_rows_of_other_organizations_are_never_replaced_or_dropped(us, scene):
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


def test_organization_id_taken_in_another_cell_is_rejected(org, admin_client, settings):
    """The cell `us` takes no connection here; calls by HTTP are tested in `across`."""
    settings.CELL, settings.CELL_SECRET = "eu", "s" * 32
    settings.CELLS = {"eu": "http://127.0.0.1:1", "us": "http://127.0.0.1:1"}
    form = {"name": "n", "zone": "UTC", "language": "en_US", "region": "US", "is_active": "on"}
    form |= {"brand_color": "#1f4e79", "calls_per_second": "1", "calls_per_day": "1"}

    def make(given):
        answer = admin_client.post("/admin/tenants/organization/add/", {**form, "id": given})
        return answer.context["adminform"].form.errors if answer.status_code == 200 else {}

    assert make("new") == {
        "id": ["The cell us cannot be asked now whether it has this id: try again."]
    }
    Placement.objects.create(organization_id="gone", phase="MOVED", cell="us")
    assert make("gone") == {"id": ["The cell us has an organization of this id."]}
    settings.CELLS = {"eu": "http://127.0.0.1:1"}
    assert make("new") == {}
    change = f"/admin/tenants/organization/{org.pk}/change/"
    page = admin_client.get(change)
    assert "id" not in page.context["adminform"].form.fields

    def answer(cell, path, question):
        asked.append((cell, path, question))
        return {"organization": "x", "cell": "us"}

    asked = []
    settings.CELLS = {"eu": "http://127.0.0.1:1", "us": "http://127.0.0.1:1"}
    assert identifiers.cell_that_has("x", answer) == "us"
    assert asked == [("us", "/cell/owner", {"kind": "organization", "value": "x"})]


def test_people_with_taken_names_get_free_ones(us, scene):
    with us():
        for name in ("ann", "ann.eu"):
            User.objects.create(username=name, email="another@example.org")
    other = User.objects.create(username="b" * 150)
    Membership.objects.create(user=other, organization_id="acme", role="SUPPORT")
    with us():
        User.objects.create(username="b" * 150)
    own = User.objects.get(username="ann")
    with (
        psycopg.connect(databases.url_of(connection.settings_dict["NAME"])) as source,
        psycopg.connect(us.url) as target,
    ):
        arriving = people.find(source, target, "acme", "eu")
        people.copy(source, target, arriving)
        known = people.find(source, target, "acme", "eu")
        again = people.find(source, target, "acme", "eu", arriving.ids)
    assert arriving.renamed == {"ann": f"ann.eu.{own.pk}", "b" * 150: f"{'b' * 147}.eu"}
    assert known == ({}, {}, {})
    assert again == arriving
    assert all(old == new for old, new in arriving.ids.items())
    assert {own.pk, other.pk} <= arriving.ids.keys() == arriving.user_names.keys()
    with us():
        assert User.objects.get(pk=own.pk).person == own.person
