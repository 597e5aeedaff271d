"""An organization in one of two cells."""

import psycopg
import pytest
from django.db import connection

from messaging.consent import ledger
from messaging.consent.ledger import ConsentDecision
from messaging.models import CircuitChange, ProviderAccount
from rme.cells import moving, placements
from rme.core.db import clock
from rme.tenants.models import Membership, Organization, User
from tests import databases, factories, pruning
from tests.cells.two_databases import Cells, in_cell
from tests.rest import Api, message, work


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


@pytest.fixture
def _moves_do_not_prune_under_a_lock(other, _postgresql):
    """Fail a test whose move executes what PostgreSQL 18 cannot: moves don't use Django's
    connections.
    """
    log = _postgresql.log
    if not log.exists():  # of another server
        yield
        return
    begin = log.stat().st_size
    names = [connection.settings_dict["NAME"], other]
    with psycopg.connect(databases.url_of("postgres"), autocommit=True) as server:
        for name in names:
            for setting in pruning.LOG_STATEMENTS.splitlines():
                server.execute(f"ALTER DATABASE {name} SET {setting}")
        yield
        for name in names:
            server.execute(f"ALTER DATABASE {name} RESET log_statement")
    if statements := pruning.read_log(log, begin):
        refused = pruning.refused(statements, databases.url_of(names[0]))
        assert not refused, "\n\n".join(each.text for each in refused)


@pytest.fixture
def us(other, settings, _moves_do_not_prune_under_a_lock):
    """Return how to work in the cell `us`, which is prepared and empty; this one is `eu`."""
    settings.CELL, settings.CELL_SECRET = "eu", "s" * 32
    settings.MOVE_DATABASE_URL = databases.url_of(other)
    moving.prepare(0)
    with in_cell("us", other):
        moving.prepare(1)
    eu = connection.settings_dict["NAME"]
    yield Cells(lambda: in_cell("us", other), lambda: in_cell("eu", eu), databases.url_of(other))
    with psycopg.connect(databases.url_of(other)) as there:
        there.execute("SET session_replication_role = replica")
        for trigger in ("tenants_auditentry", "tenants_auditvalues"):
            there.execute(f"ALTER TABLE {trigger} DISABLE TRIGGER USER")
        names = [each.name for each in moving.tables()]
        names += ["tenants_user", "tenants_user_groups", "tenants_placement", "tenants_move"]
        for name in names:
            there.execute(f"DELETE FROM {name}")
    placements.forget()


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
    account = ProviderAccount.objects.create(
        organization=org, channel="PUSH", kind="simulator", name="account"
    )
    CircuitChange.objects.create(account_id=account.pk, is_open=True, why="FAILING", at=clock.now())
    ann = User.objects.create(username="ann", email="ann@example.org", is_staff=True)
    Membership.objects.create(user=ann, organization=org, role="OWNER")
    return api, person
