"""The demo makes what is missing, and neither deletes nor changes what it hasn't made."""

import json

import pytest
from django.core.management import call_command

from messaging.models import SenderDomain, Template
from rme import demo
from rme.crm.models import Contact
from rme.tenants.models import ApiKey, Application, Membership, Organization, User
from tests import factories
from tests.rest import Api, message, token

pytestmark = pytest.mark.django_db
BASE = "http://127.0.0.1:8000"
CREDENTIALS = {"client_id", "client_secret"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "demo.json"


def ensure(path):
    return demo.ensure(path, base_url=BASE)


def stock():
    """Return all rows that the demo may have made, so that none is lost or changed unseen."""
    models = (Organization, User, Membership, Application, ApiKey, Contact, SenderDomain, Template)
    return {
        model.__name__: {row["id"]: row for row in model.objects.order_by("pk").values()}
        for model in models
    }


def unchanged(before, after):
    """Return whether all rows of before are there as they were."""
    return all(
        after[name][key] == row for name, rows in before.items() for key, row in rows.items()
    )


def forget_marks():
    """Make the demo one of an earlier release."""
    Organization.objects.update(demo_part="", simulator=False)


def works(values):
    """Return whether a token can be had and the API key is valid."""
    answer = token(values["client_id"], values["client_secret"])
    return (
        answer.status_code == 200
        and ApiKey.objects.filter(
            public_id=values["api_key"].split("_")[1],
            organization_id=values["org"],
            revoked_at=None,
        ).exists()
    )


def test_a_second_start_changes_nothing(path):
    made = ensure(path)
    before, text = stock(), path.read_text()
    assert ensure(path) == made
    assert (stock(), path.read_text(), path.stat().st_mode & 0o777) == (before, text, 0o600)
    assert works(made)
    assert works(made["other"])
    assert made["admin_user"] == "admin"
    assert User.objects.get(username="admin").check_password(made["admin_password"])


@pytest.mark.parametrize("is_former", [False, True], ids=["marked", "of an earlier release"])
def test_demo_organization_without_its_application_gets_a_new_one(path, is_former):
    made = ensure(path)
    mine = factories.contact(Organization.objects.get(pk="demo"))
    Application.objects.filter(client_id=made["client_id"]).delete()
    if is_former:
        forget_marks()
    before = stock()
    again = ensure(path)
    after = stock()
    if is_former:
        for pk in ("demo", "other"):
            assert after["Organization"][pk].pop("demo_part") == pk
            assert (after["Organization"][pk].pop("simulator")) is True
            del before["Organization"][pk]["demo_part"], before["Organization"][pk]["simulator"]
    assert unchanged(before, after)
    added = {name: len(after[name]) - len(before[name]) for name in after}
    assert {name: count for name, count in added.items() if count} == {"Application": 1}
    assert {name for name in made if made[name] != again[name]} == CREDENTIALS
    assert works(again)
    assert Contact.objects.filter(pk=mine.pk).exists()
    assert json.loads(path.read_text())["client_id"] == again["client_id"]


def test_existing_organizations_with_the_demo_ids_are_left_alone(path):
    for pk in ("demo", "other"):
        row = factories.organization(pk, simulator=False)
        Api(row).send(message(factories.contact(row)))
    boss = User.objects.create_superuser("admin", password="mine alone")
    program = User.objects.create(username="demo-integration")
    before = stock()
    made = ensure(path)
    assert unchanged(before, stock())
    assert (made["org"], made["other"]["org"]) == ("demo-2", "other-2")
    assert (made["admin_user"], made["integration_user"]) == ("admin-2", "demo-integration-2")
    assert User.objects.get(pk=boss.pk).check_password("mine alone")
    assert not program.groups.exists()
    assert works(made)
    assert ensure(path) == made


def test_demo_leaves_another_organization_with_its_former_id_alone(path):
    made = ensure(path)
    Organization.objects.filter(pk="other").delete()
    factories.organization("other")
    before = stock()
    again = ensure(path)
    assert unchanged(before, stock())
    assert (again["org"], again["other"]["org"]) == ("demo", "other-2")
    assert again["client_id"] == made["client_id"]


def test_demo_file_of_another_database_is_not_used(path, tmp_path):
    values = {"org": "demo", "client_id": "x", "contact_ids": [], "admin_user": "admin",
              "admin_password": "theirs", "other": {"org": "other", "client_id": "y"}}  # fmt: skip
    path.write_text(json.dumps(values))
    for pk in ("demo", "other"):
        factories.organization(pk)
    User.objects.create_superuser("admin", password="mine alone")
    before = stock()
    assert ensure(path)["org"] == "demo-2"
    assert unchanged(before, stock())


def test_lost_file_brings_new_secrets_and_keeps_the_data(path):
    made = ensure(path)
    path.unlink()
    before = stock()
    again = ensure(path)
    assert unchanged(before, stock())
    assert (again["org"], again["contact_ids"]) == ("demo", made["contact_ids"])
    assert works(again)
    assert again["admin_user"] == "admin-2"


def test_each_missing_part_is_recreated_alone(path):
    made = ensure(path)
    ApiKey.objects.filter(organization="other").delete()
    Contact.objects.filter(pk=made["contact_ids"][0]).delete()
    Template.objects.filter(organization="demo", channel="SMS").delete()
    Application.objects.filter(client_id=made["jwt_client_id"]).delete()
    User.objects.filter(username="admin").delete()
    before = stock()
    again = ensure(path)
    after = stock()
    assert unchanged(before, after)
    assert {name: len(after[name]) - len(before[name]) for name in after} == {
        "Organization": 0, "User": 1, "Membership": 1, "Application": 1, "ApiKey": 1, "Contact": 1,
        "SenderDomain": 0, "Template": 1,
    }  # fmt: skip
    assert works(again)
    assert User.objects.get(username="admin").check_password(again["admin_password"])
    assert ensure(path) == again


def test_command_prints_the_demo(path, settings, capsys):
    settings.VAR = path.parent
    factories.organization("other")
    call_command("demo", "--json")
    printed = json.loads(capsys.readouterr().out)
    assert (printed["org"], printed["other"]["org"]) == ("demo", "other-2")
