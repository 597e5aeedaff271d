"""Moving an organization between two databases, and what can go wrong on the way."""

import threading
from uuid import uuid4

import psycopg
import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.db import connection, connections

from messaging.consent import ledger
from messaging.delivery import claims
from messaging.models import ArchiveFile, CircuitChange, Delivery, Message
from rme.cells import moving, placements
from rme.cells.moving import people
from rme.cells.moving.carried import PEOPLE
from rme.core.environment.archive_settings import StoreSettings
from rme.tenants.models import Cell, Membership, Move, Organization, Placement, User
from tests import databases
from tests.cells.two_databases import counts, move, phase, to_us
from tests.rest import message, work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]


def test_an_organization_moves_while_it_is_called(org, us, scene):
    api, person = scene
    ann = User.objects.get(username="ann")
    with us():  # where ann has connected an account that she has there
        known = User.objects.create(username="a.nn", person=ann.person)
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
    assert not CircuitChange.objects.exists()
    assert not Move.objects.exists()
    assert phase() == "MOVED"


def test_too_long_pause_is_given_up_and_the_move_undone(us, scene):
    api, person = scene
    before = counts()
    with psycopg.connect(databases.url_of(connection.settings_dict["NAME"])) as reader:

        def hold(text):
            if text == "paused":
                reader.execute("SELECT 1")  # a transaction that stays open

        with (
            pytest.raises(moving.TakesTooLong, match=r"stay open.*\d"),
            moving.opened(to_us(), "acme", hold) as mover,
        ):
            mover.move(moving.MoveLimits(pause_seconds=0.0))
    placements.forget()
    assert phase() == ""
    assert api.send(message(person)).status_code == 202
    move("--abort")
    with us():
        assert (counts(), Placement.objects.count()) == ({}, 0)
    assert counts().keys() == before.keys()
    assert not Move.objects.exists()


def test_move_is_rejected_with_a_reason(us, scene, other, settings):
    with (
        moving.opened(to_us(), "acme", print),
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


def test_keys_of_a_newly_migrated_table_start_with_the_cell_number(us, scene):
    sequence = "tenants_membership_id_seq"  # as of a table that a migration has just made
    with us(), connection.cursor() as cursor:
        cursor.execute(f"ALTER SEQUENCE {sequence} RESTART WITH 1")
    with pytest.raises(CommandError, match=f"{sequence} of the cell us gives keys that other"):
        move()
    with us():
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT nextval('{sequence}')")
            assert cursor.fetchone() == (2**40 + 1,)
    move()
    with us():
        assert phase() == ""


def test_accounts_without_any_role_go_with_the_rows(us, scene):
    """Neither an aborted move nor a finished one leaves passwords and factors behind."""
    ann = User.objects.get(username="ann")
    Authenticator.objects.create(user=ann, type="totp", data={"secret": "s"})
    other = Organization.objects.create(pk="other", name="Other")
    for name, more in [("both", {}), ("root", {"is_superuser": True})]:
        user = User.objects.create(username=name, **more)
        Membership.objects.create(user=user, organization_id="acme", role="VIEWER")
    Membership.objects.create(
        user=User.objects.get(username="both"), organization=other, role="VIEWER"
    )

    def stop(text):
        raise InterruptedError

    with moving.opened(to_us(), "acme", stop) as mover, pytest.raises(InterruptedError):
        mover.move(moving.MoveLimits())
    with us():
        assert User.objects.filter(username="ann").exists()
    move("--abort")
    with us():
        assert not User.objects.exists()
    move()
    with us():
        assert Authenticator.objects.get().user.username == "ann"
    move("--drop")
    assert {*User.objects.values_list("username", flat=True)} == {"both", "root"}
    assert not Authenticator.objects.exists()


def test_every_reference_to_a_user_is_known():
    """A table that names people of an organization decides who moves with it: `people._OF`."""
    tokens = "oauth2_provider_accesstoken"  # of integration users
    references = {
        (relation.related_model._meta.db_table, relation.field.column)
        for relation in User._meta.related_objects
        if relation.related_model._meta.label not in (*moving.LEFT_BEHIND, *PEOPLE)
    }
    named = {
        (table, column)
        for table, column in references
        if f"SELECT {column} FROM {table} WHERE" in people._OF
    }
    assert references - named <= {(tokens, "user_id")}
    assert people._OF.count("organization_id =") == len(named)


def test_archived_messages_move_only_to_a_cell_reading_their_store(us, scene, settings):
    ArchiveFile.objects.create(
        organization_id="acme", path="p", state="LIVE", first_id=uuid4(), last_id=uuid4(),
        messages=1, size=1, digest="d", version=1, contacts=[],
    )  # fmt: skip
    settings.ARCHIVE = StoreSettings("s3://bucket/eu/", {"endpoint": "https://s3.eu"})
    moving.prepare(None)
    for url, endpoint in [("s3://bucket/eu", "https://s3.us"), ("s3://us", "https://s3.eu")]:
        settings.ARCHIVE = StoreSettings(url, {"endpoint": endpoint})
        with us():
            moving.prepare(None)
        with pytest.raises(CommandError, match="us is not known to read the store of this cell"):
            move()
    settings.ARCHIVE = StoreSettings("s3://bucket/eu", {"endpoint": "https://s3.eu"})
    with us():
        moving.prepare(None)
    move()
    with us():
        assert phase() == ""


def test_every_table_is_carried_or_left_behind_for_a_reason():
    """A new model without an organization ends here: `carried.LEFT_BEHIND` says why it may."""
    carried = {each.model._meta.label for each in moving.tables()}
    assert carried.isdisjoint(moving.LEFT_BEHIND)
    assert all(moving.LEFT_BEHIND.values())
    assert carried >= moving.NOT_LATE.keys()


def test_rows_deleted_by_a_job_of_the_target_are_copied_again(us, scene):
    def purge(text):
        if text == "paused":
            with psycopg.connect(project.MOVE_DATABASE_URL) as there:
                for table in ("messaging_idempotencykey", "messaging_event", "messaging_attempt"):
                    there.execute(f"DELETE FROM {table}")

    with moving.opened(to_us(), "acme", purge) as mover:
        report = mover.move(moving.MoveLimits())
    here = counts()
    assert here == {name: each.rows for name, each in report.digests.items() if each.rows}
    with us():
        assert counts() == here


def test_password_changed_during_the_move_changes_in_the_target_too(us, scene):
    ann = User.objects.get(username="ann")
    bob = User.objects.create(username="bob", email="bob@example.org", password="bob's")
    Membership.objects.create(user=bob, organization_id="acme", role="SUPPORT")
    Authenticator.objects.create(user=ann, type="totp", data={"secret": "old"})
    with us():  # where bob has connected an account that he has there
        User.objects.create(username="bobby", person=bob.person, password="another")

    def change(text):
        if text == "leaving":
            User.objects.update(password="new")
            ann.authenticator_set.update(data={"secret": "new"})
            Authenticator.objects.create(user=ann, type="recovery_codes", data={})
        if text == "paused":
            User.objects.filter(pk=ann.pk).update(is_active=False)

    with moving.opened(to_us(), "acme", change) as mover:
        mover.move(moving.MoveLimits())
    with us():
        there = User.objects.get(pk=ann.pk)
        assert (there.password, there.is_active) == ("new", False)
        found = Authenticator.objects.filter(user=there).order_by("type")
        assert list(found.values_list("type", "data")) == [
            ("recovery_codes", {}), ("totp", {"secret": "new"})
        ]  # fmt: skip
        assert User.objects.get(username="bobby").password == "another"


def test_an_account_with_the_same_name_and_email_gets_no_role(us, scene):
    """Whoever is invited with the address of another chooses the password of the account."""
    with us():
        taker = User.objects.create(username="ann", email="ann@example.org", password="theirs")
        EmailAddress.objects.create(user=taker, email="ann@example.org", verified=True)
    move()
    own = User.objects.get(username="ann")
    with us():
        owner = Membership.objects.get(organization_id="acme", role="OWNER").user
        assert (owner.pk, owner.username, owner.person) == (own.pk, "ann.eu", own.person)
        taker.refresh_from_db()
        assert (taker.username, taker.password, taker.memberships.count()) == ("ann", "theirs", 0)
