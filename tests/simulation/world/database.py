"""The databases of the simulation: migrated once, and one copy for each process."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections

from messaging import providers
from messaging.models import (
    PARTITIONED,
    AddressOptOut,
    Callback,
    Category,
    ConsentEntry,
    CountedUntil,
    HourCount,
    IdempotencyKey,
    MinuteCount,
    Pause,
    ProviderAccount,
    Suppression,
    WebhookDelivery,
    WebhookEndpoint,
)
from messaging.policy import organization_policy
from messaging.webhooks import signatures
from push.models import Device, Feedback
from rme.core.db import clock
from rme.crm.models import Contact
from rme.tenants import organizations
from rme.tenants.models import AuditEntry, AuditValues, Organization
from tests import databases, factories
from tests.simulation.world.clock import BEGINS, sql_functions
from tests.simulation.world.endpoint import ENDPOINTS
from tests.simulation.world.provider import WorldProvider

ORGANIZATION = "world"
TEMPLATE = "rme_simulation"
CONNECTIONS = 40
ACCOUNTS = (("a", "EMAIL", 1), ("b", "EMAIL", 2), ("c", "SMS", 1), ("d", "PUSH", 1))
"""Name, channel and priority."""
CATEGORIES = (("NEWS", "HOLD"), ("OFFERS", "RESEND"))
"""Name, and what is done where the outcome stays unknown; TRANSACTIONAL is sent again."""
CAP = 50
"""The frequency cap of OFFERS. No history reaches it, but with it a worker waits for the answer to
each check of the gates, and what people decide comes between.
"""
CONTACTS = 3
DEVICES = (2, 1, 0)
"""How many devices each of the contacts has."""
SETTINGS = (
    "search_path = simulated, pg_catalog, public",
    "synchronous_commit = off",
    "deadlock_timeout = '50ms'",
    # Each statement is planned once: planning costs more than to read the few rows of a history.
    "plan_cache_mode = force_generic_plan",
    "enable_seqscan = off",
    "enable_sort = off",
)

# Plans look at the default partitions alone: planning for those of each month costs more than all
# else. Defaults of columns name PostgreSQL's own clock, since they were made without ours.
_PREPARE = """
DO $$ DECLARE part record; BEGIN
  FOR part IN SELECT inhrelid::regclass AS name FROM pg_inherits
    JOIN pg_class ON pg_class.oid = inhrelid
    WHERE relkind = 'r' AND relname NOT LIKE '%_default'
  LOOP EXECUTE format('DROP TABLE %s', part.name); END LOOP;
  FOR part IN SELECT adrelid::regclass AS name, attname AS own FROM pg_attrdef
    JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
    WHERE pg_get_expr(adbin, adrelid) ~ 'timestamp\\(\\)|now\\(\\)'
  LOOP
    EXECUTE format('ALTER TABLE %s ALTER %I SET DEFAULT simulated.now()', part.name, part.own);
  END LOOP;
END $$
"""
AUDIT = (AuditEntry, AuditValues)
"""Tables that refuse to be emptied, but in the simulation."""
_REVIVE = f"""
UPDATE {Device._meta.db_table} SET active = true, inactive_reason = '', inactive_since = NULL,
  history = '[]' WHERE NOT active
"""
_FREE = f"""
UPDATE {WebhookEndpoint._meta.db_table} SET free_at = to_timestamp({BEGINS.timestamp()}),
  failures = 0, failing_since = NULL, fence = 0
"""
_EMPTIED = [
    model._meta.db_table
    for model in (
        *PARTITIONED,
        WebhookDelivery,
        IdempotencyKey,
        Suppression,
        ConsentEntry,
        AddressOptOut,
        Pause,
        Callback,
        MinuteCount,
        HourCount,
        CountedUntil,
        Feedback,
        *AUDIT,
    )
]


def _server() -> "psycopg.Connection[Any]":
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path="/postgres", query="")
    return psycopg.connect(url.geturl(), autocommit=True)


def watcher() -> "psycopg.Connection[Any]":
    """Return a connection on which it is looked up who waits for a lock."""
    return _server()


def _use(name: str) -> None:
    connections.close_all()
    connection.close_pool()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
    options = settings.DATABASES["default"]["OPTIONS"]
    options["pool"] |= {"max_size": CONNECTIONS, "timeout": 60.0}
    # Statements of cursors are planned once, too: planning is half of what the server does.
    options |= {"server_side_binding": True, "prepare_threshold": 1}


def _template(server: "psycopg.Connection[Any]") -> str:
    """Return the name of a migrated database: that of a test run, or our own, migrated now."""
    found = {name for (name,) in server.execute("SELECT datname FROM pg_database")}
    if databases.TEMPLATE in found:
        return databases.TEMPLATE
    if TEMPLATE not in found:
        server.execute(f"CREATE DATABASE {TEMPLATE}")
    _use(TEMPLATE)
    call_command("migrate", verbosity=0, interactive=False)
    connections.close_all()
    connection.close_pool()
    return TEMPLATE


def create(name: str, clock_file: Path) -> None:
    """Create the database of a process, with the organization of the simulation, and use it."""
    with _server() as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        # One process after the other: nobody may be connected to what is copied.
        server.execute("SELECT pg_advisory_lock(hashtext(%s))", [TEMPLATE])
        server.execute(f"CREATE DATABASE {name} TEMPLATE {_template(server)}")
        for setting in SETTINGS:
            server.execute(f"ALTER DATABASE {name} SET {setting}")
    _use(name)
    with connection.cursor() as cursor:
        cursor.execute(sql_functions(clock_file))
        cursor.execute(_PREPARE)
        for model in AUDIT:
            cursor.execute(f"ALTER TABLE {model._meta.db_table} DISABLE TRIGGER USER")
    _create_organization()


def drop(name: str) -> None:
    """Drop the database of a process."""
    connections.close_all()
    connection.close_pool()
    with _server() as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _create_organization() -> None:
    providers.REGISTRY[WorldProvider.kind] = WorldProvider
    row: Organization = factories.organization(ORGANIZATION, simulator=False)
    for name, on_unknown in CATEGORIES:
        Category.objects.create(
            organization=row,
            name=name,
            regime="OPT_OUT",
            on_unknown=on_unknown,
            cap_count=CAP if name == "OFFERS" else None,
        )
    for name, channel, priority in ACCOUNTS:
        ProviderAccount.objects.create(
            organization=row,
            name=name,
            kind=WorldProvider.kind,
            channel=channel,
            priority=priority,
            credentials=orjson.dumps({"name": name}).decode(),
        )
    for number in range(ENDPOINTS):
        WebhookEndpoint.objects.create(
            organization=row,
            url=f"https://hooks{number}.example/",
            types=["message.*"],
            secret=signatures.new_secret(),
        )
    for number in range(CONTACTS):
        person = factories.contact(
            row, email=f"person{number}@people.example", mobile=f"+1212555010{number}"
        )
        for place in range(DEVICES[number]):
            factories.device(row, person, f"device-{number}-{place}")


def contacts() -> list[Contact]:
    """Return the people, in their order."""
    return list(Contact.objects.filter(organization_id=ORGANIZATION).order_by("email"))


def account_rows() -> dict[str, ProviderAccount]:
    """Return the provider accounts by name."""
    return {row.name: row for row in ProviderAccount.objects.all()}


def empty() -> None:
    """Delete what a history has stored."""
    deleted = ", ".join(f"d{place} AS (DELETE FROM {name})" for place, name in enumerate(_EMPTIED))
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {deleted} SELECT 1")
        cursor.execute(_REVIVE)
        cursor.execute(_FREE)


def vacuum() -> None:
    """Remove what was deleted from the tables."""
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM {', '.join(_EMPTIED)}")


def warm_up() -> None:
    """Fill the caches with what a process knows of the organization after its first task."""
    organizations.get_many([ORGANIZATION])
    organizations.random_id()
    organization_policy.of_many([ORGANIZATION])
    clock.now()
