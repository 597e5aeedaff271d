"""Post-deploy migrations: left by `migrate --pre-deploy`, and not missed by `/readyz`."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

pytestmark = pytest.mark.django_db(transaction=True)
STAGED, LATER = "tests.migrating.staged", "tests.migrating.later"


def migrate(*arguments, **options):
    """Migrate; return what standard error says."""
    output = io.StringIO()
    call_command("migrate", *arguments, verbosity=0, stderr=output, **options)
    return output.getvalue()


def columns():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'staged' "
            "ORDER BY 1"
        )
        return [name for (name,) in cursor.fetchall()]


def ready():
    answer = Client(headers={"host": "127.0.0.1"}).get("/readyz")
    return answer.status_code, answer.content


@pytest.fixture
def staged(settings):
    apps = settings.INSTALLED_APPS
    settings.INSTALLED_APPS = [*apps, STAGED]
    yield
    settings.INSTALLED_APPS = [*apps, STAGED, LATER]
    migrate("staged", "zero")


@pytest.mark.usefixtures("staged")
def test_a_release_is_ready_without_its_post_deploy_migrations():
    assert ready() == (503, b"migrations\n")
    told = "migrate: staged.0002_remove_column: left for `migrate` without --pre-deploy.\n"
    assert migrate(pre_deploy=True) == told
    assert (columns(), ready()) == (["new", "old"], (200, b"ok\n"))
    assert migrate(pre_deploy=True) == told
    assert migrate() == ""
    assert (columns(), ready()) == (["new"], (200, b"ok\n"))
    assert migrate(pre_deploy=True) == ""


@pytest.mark.usefixtures("staged")
def test_the_next_release_waits_for_the_post_deploy_migrations_of_this_one(settings):
    migrate(pre_deploy=True)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, LATER]
    assert ready() == (503, b"migrations\n")
    with pytest.raises(CommandError) as refused:
        migrate(pre_deploy=True)
    assert str(refused.value) == (
        "later.0001_after comes after staged.0002_remove_column, which is not applied: "
        "run `migrate` once no process of the release before that one runs."
    )
    migrate()
    assert ready() == (200, b"ok\n")


def test_pre_deploy_cannot_be_limited_to_an_app():
    with pytest.raises(CommandError, match="goes with no app"):
        migrate("messaging", pre_deploy=True)
