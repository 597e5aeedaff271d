"""Moving an organization between two databases, and what can go wrong on the way."""

import threading
from contextlib import contextmanager

import psycopg
import pytest
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.db import connection, connections

from messaging.consent import ledger
from messaging.consent.ledger import ConsentDecision
from messaging.delivery import claims, tasks
from messaging.models import Delivery, Message
from rme.core.cache import TtlCache
from rme.tenants import cells
from rme.tenants.cells import moving
from rme.tenants.models import Cell, Membership, Move, Organization, Placement, User
from tests import databases, factories
from tests.rest import Api, message, work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


@pytest.fixture(scope="module")
def other(django_db_setup):
    """Return the name of the other cell's database."""
    name = f"{connection.settings_dict['NAME']}_us"
    template = databases.template()
    if not template:
        pytest.skip("pytest runs without -n, so that there is no migrated database to copy")
    with psycopg.connect(databases.url_of("postgres"), autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield name
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _enter(cell, database):
    connections.close_all()
    connection.close_pool()
    project.CELL, connection.settings_dict["NAME"] = cell, database
    TtlCache.clear_all()
    cells.forget()


@contextmanager
def in_cell(cell, database):
    """Work in a cell: by its name and its database."""
    before = project.CELL, connection.settings_dict["NAME"]
    _enter(cell, database)
    try:
        yield
    finally:
        _enter(*before)


@pytest.fixture
def us(other, settings):
    """Return how to work in the cell `us`, which is prepared and empty; this one is `eu`."""
    settings.CELL = "eu"
    settings.MOVE_DATABASE_URL = databases.url_of(other)
    moving.prepare(0)
    with in_cell("us", other):
        moving.prepare(1)
    yield lambda: in_cell("us", other)
    with psycopg.connect(databases.url_of(other)) as there:
        there.execute("SET session_replication_role = replica")
        for trigger in ("tenants_auditentry", "tenants_auditvalues"):
            there.execute(f"ALTER TABLE {trigger} DISABLE TRIGGER USER")
        names = [each.name for each in moving.tables()]
        names += ["tenants_user", "tenants_user_groups", "tenants_placement", "tenants_move"]
        for name in names:
            there.execute(f"DELETE FROM {name}")
    cells.forget()


def move(*words):
    call_command("move_organization", "acme", "--to", "us", *words, verbosity=0)
    cells.forget()


def ends():
    return moving.Ends(project.DATABASES["default"], moving.of_url(project.MOVE_DATABASE_URL), "us")


def counts():
    """Return the number of rows of each table that a move carries, of those that have any."""
    with connection.cursor() as cursor:
        found = {}
        for table in moving.tables():
            cursor.execute(f"SELECT count(*) FROM {table.name} t WHERE {table.rows_of('acme')}")
            (found[table.name],) = cursor.fetchone()
    return {name: count for name, count in found.items() if count}


def phase():
    return cells.where("acme").phase


@pytest.fixture
def scene(org, us):
    """Create an organization with sent and waiting messages, a ledger, and people."""
    Organization.objects.update(calls_per_second=100_000)
    api, person = Api(org), factories.contact(org)
    for _ in range(3):
        assert api.send(message(person)).status_code == 202
    work()
    assert api.send(message(person), **{"Idempotency-Key": "k"}).status_code == 202
    decision = ConsentDecision(str(person.pk), "EMAIL", "MARKETING", "OPT_IN", "API", None)
    ledger.record(org.pk, [decision])
    ann = User.objects.create(username="ann", email="ann@example.org", is_staff=True)
    Membership.objects.create(user=ann, organization=org, role="OWNER")
    return api, person


def test_an_organization_moves_while_it_is_called(org, us, scene):
    api, person = scene
    with us():  # where ann has a role in another organization, and another ann.b has a name
        known = User.objects.create(username="ann", email="ann@example.org")
    answers = {}
    stop = threading.Event()

    def call():
        while not stop.is_set():
            response = api.send(message(person))
            answers.setdefault(response.status_code, []).append(response.json())
        connections.close_all()

    caller = threading.Thread(target=call)
    caller.start()
    try:
        move()
    finally:
        stop.set()
        caller.join()
    assert set(answers) <= {202, 503, 421}
    accepted = {each["messageId"] for each in answers[202]}
    here = counts()
    assert api.send(message(person)).status_code == 421
    with us():
        assert {name: here[name] for name in here} == counts()
        assert phase() == ""
        stored = set(map(str, Message.objects.values_list("pk", flat=True)))
        assert accepted <= stored
        assert len(stored) == len(accepted) + 4
        assert ledger.verify("acme").broken is None
        assert Membership.objects.get(organization_id="acme").user_id == known.pk
        replayed = api.send(message(person), **{"Idempotency-Key": "k"})
        assert replayed.json()["messageId"] in stored
        assert api.send(message(person)).status_code == 202
        work()
        assert not Delivery.objects.exclude(status="DELIVERED").exists()
    assert not claims.claim("acme", "EMAIL", priority=0).deliveries
    move("--drop")
    assert set(counts()) <= {"tenants_auditentry", "tenants_auditvalues"}
    assert not Organization.objects.filter(pk="acme").exists()
    assert not Move.objects.exists()
    assert phase() == "MOVED"


@pytest.mark.parametrize("word", ["copied", "caught up", "paused", "serves"])
def test_a_move_that_is_killed_goes_on(us, other, scene, word):
    def kill(text):
        if word in text:
            with psycopg.connect(databases.url_of(connection.settings_dict["NAME"])) as server:
                server.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'move_organization' AND datname = ANY(%s)",
                    [[connection.settings_dict["NAME"], other]],
                )

    with (
        pytest.raises(psycopg.Error),
        moving.opened(ends(), "acme", kill) as mover,
    ):
        mover.move(30)
        mover.abort()  # after the last step there is one statement more
    cells.forget()
    serving = phase() in ("", "LEAVING")
    with us():
        assert phase() != "" or not serving
    move()
    here = counts()
    with us():
        assert (phase(), counts()) == ("", here)
    assert phase() == "MOVED"


@pytest.mark.parametrize("whole", [True, False])
def test_a_pause_of_a_dead_move_is_ended_by_workers(us, scene, whole):
    """Dead is who has lost the lock, even if the move's other connections stand."""
    api, person = scene

    def kill(text):
        if text != "paused":
            return
        assert cells.end_abandoned_pauses() == []  # it lives
        assert phase() == "PAUSED"
        lost = [mover.lock, *([mover.source, mover.target] if whole else [])]
        pids = [each.info.backend_pid for each in lost]
        with connection.cursor() as cursor:
            for pid in pids:
                cursor.execute("SELECT pg_terminate_backend(%s)", [pid])
        if not whole:
            tasks.sweep()
            assert phase() == ""

    with pytest.raises((psycopg.Error, moving.TakesTooLong)):  # noqa: SIM117 - mover is used above
        with moving.opened(ends(), "acme", kill) as mover:
            mover.move(30)
    tasks.sweep()
    assert phase() == ""
    assert api.send(message(person)).status_code == 202
    move()
    here = counts()
    with us():
        assert (phase(), counts()) == ("", here)


def test_a_pause_that_takes_too_long_is_given_up_and_the_move_undone(us, scene):
    api, person = scene
    before = counts()
    with psycopg.connect(databases.url_of(connection.settings_dict["NAME"])) as reader:

        def hold(text):
            if text == "paused":
                reader.execute("SELECT 1")  # a transaction that stays open

        with (
            pytest.raises(moving.TakesTooLong, match=r"stay open.*\d"),
            moving.opened(ends(), "acme", hold) as mover,
        ):
            mover.move(0.0)
    cells.forget()
    assert phase() == ""
    assert api.send(message(person)).status_code == 202
    move("--abort")
    with us():
        assert (counts(), Placement.objects.count()) == ({}, 0)
    assert counts().keys() == before.keys()
    assert not Move.objects.exists()


def test_moves_that_are_refused(us, scene, other, settings):
    with (
        moving.opened(ends(), "acme", print),
        pytest.raises(CommandError, match="Another process"),
    ):
        move()
    for words, why in [
        (["--abort"], "No move of this organization has begun"),
        (["--drop"], "No finished move"),
    ]:
        with pytest.raises(CommandError, match=why):
            move(*words)
    with us():
        Organization.objects.create(pk="acme", name="another")
    with pytest.raises(CommandError, match="another organization of that id"):
        move()
    with us():
        Organization.objects.all().delete()
        Cell.objects.update(keys={**Cell.objects.get().keys, "FIELD_KEYS": []})
    with pytest.raises(CommandError, match="has not the FIELD_KEYS"):
        move()
    settings.MOVE_DATABASE_URL = databases.url_of(connection.settings_dict["NAME"])
    with pytest.raises(CommandError, match="that of the cell eu"):
        move()
    assert phase() == ""


def test_the_keys_of_a_cell_begin_with_its_number(us, scene):
    with us():
        row = User.objects.create(username="first")
        assert row.pk > 2**40
        with pytest.raises(moving.NotReady, match="has the number 1"):
            moving.prepare(2)
        assert moving.prepare(None) == []


def test_every_table_is_carried_or_left_behind_for_a_reason():
    """A new model without an organization ends here: `carried.LEFT_BEHIND` says why it may."""
    carried = {each.model._meta.label for each in moving.tables()}
    assert carried.isdisjoint(moving.LEFT_BEHIND)
    assert all(moving.LEFT_BEHIND.values())


def test_rows_that_a_job_of_the_target_deletes_are_copied_again(us, scene):
    def purge(text):
        if text == "paused":
            with psycopg.connect(project.MOVE_DATABASE_URL) as there:
                for table in ("messaging_idempotencykey", "messaging_event", "messaging_attempt"):
                    there.execute(f"DELETE FROM {table}")

    with moving.opened(ends(), "acme", purge) as mover:
        report = mover.move(30)
    here = counts()
    assert here == {name: each.rows for name, each in report.digests.items() if each.rows}
    with us():
        assert counts() == here
