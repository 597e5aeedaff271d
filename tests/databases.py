"""The databases of the tests: copies of one that is migrated once, and emptied after a commit."""

import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from psycopg import sql
from pytest_django import DjangoDbBlocker

TEMPLATE, UNFINISHED = "test_rme_migrated", "test_rme_migrating"
COPY = "test_rme_migrated_copy"
TEMPLATE_VARIABLE = "RME_TESTS_TEMPLATE"
"""Names a migrated database, for tests that run others on an engine of their own."""
WAIT_SECONDS = 600.0


def url_of(database: str) -> str:
    """Return the address of a database of the tests' server."""
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{database}", query="").geturl()


def _server() -> "psycopg.Connection[Any]":
    return psycopg.connect(url_of("postgres"), autocommit=True)


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Keep all others from a table while the block runs."""
    own = url_of(connection.settings_dict["NAME"])
    with psycopg.connect(own) as other:
        other.execute(
            sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(table))
        )
        yield
        other.rollback()


def drop_template() -> None:
    """Remove what this run or an earlier one has left behind."""
    with _server() as server:
        for name in (TEMPLATE, UNFINISHED, COPY):
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def migrate_template(blocker: DjangoDbBlocker) -> None:
    """Migrate a database in a process of its own, while the workers collect the tests."""
    drop_template()
    with _server() as server:
        server.execute(f"CREATE DATABASE {UNFINISHED}")
    multiprocessing.get_context("fork").Process(
        target=_migrate, args=(blocker,), daemon=True
    ).start()


def _migrate(blocker: DjangoDbBlocker) -> None:
    try:
        blocker.unblock()
        settings.DATABASES["default"]["NAME"] = UNFINISHED
        connection.settings_dict["NAME"] = UNFINISHED
        call_command("migrate", verbosity=0, interactive=False, run_syncdb=True)
        connections.close_all()
        connection.close_pool()
        with _server() as server:
            server.execute(f"ALTER DATABASE {UNFINISHED} RENAME TO {TEMPLATE}")
    finally:
        with suppress(psycopg.Error), _server() as server:
            server.execute(f"DROP DATABASE IF EXISTS {UNFINISHED} WITH (FORCE)")


def template() -> str:
    """Return the name of the migrated database, once it is complete; empty if there is none."""
    until = time.monotonic() + WAIT_SECONDS
    with _server() as server:
        while True:
            found = {name for (name,) in server.execute("SELECT datname FROM pg_database")}
            if UNFINISHED not in found:
                break
            assert time.monotonic() < until, "the migrations do not end"
            time.sleep(0.1)
    name = os.environ.get(TEMPLATE_VARIABLE, TEMPLATE)
    return name if name in found else ""


@contextmanager
def copy_of(name: str) -> Iterator[str]:
    """Return the address of a copy of the template, which nobody may be connected to itself."""
    with _server() as server:
        server.execute(f"CREATE DATABASE {COPY} TEMPLATE {name}")
        try:
            yield url_of(COPY)
        finally:
            server.execute(f"DROP DATABASE {COPY}")


def use_template() -> None:
    """Have the test database copied from the template; without one it is migrated itself."""
    if name := template():
        test = settings.DATABASES["default"].setdefault("TEST", {})
        test |= {"TEMPLATE": name, "MIGRATE": False}


_NOT_EMPTY = """
  FOR name IN SELECT relname FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
      AND relname <> 'django_migrations' AND pg_relation_size(oid) > 0
  LOOP
    EXECUTE format('SELECT EXISTS (SELECT FROM %I)', name) INTO found;
    IF found THEN
"""
_KEEP = f"""
DO $$ DECLARE name text; found boolean; BEGIN
  CREATE SCHEMA kept;
{_NOT_EMPTY}
      EXECUTE format('CREATE TABLE kept.%1$I AS TABLE %1$I', name);
    END IF;
  END LOOP;
END $$
"""
# Django truncates all tables, which makes new files for each of them and for each of their indexes,
# and then writes the content types and permissions again. A table that no other refers to is
# truncated here too if it has grown, as deleted rows stay in its pages, or if triggers protect it.
_EMPTY = f"""
DO $$ DECLARE name text; found boolean; BEGIN
  SET LOCAL session_replication_role = replica;
{_NOT_EMPTY}
      IF to_regclass(format('kept.%I', name)) IS NULL THEN
        EXECUTE CASE WHEN NOT EXISTS (
            SELECT FROM pg_constraint WHERE confrelid = name::regclass
          ) AND (pg_relation_size(name::regclass) > 65536 OR EXISTS (
            SELECT FROM pg_trigger WHERE tgrelid = name::regclass AND NOT tgisinternal))
          THEN format('TRUNCATE %I', name) ELSE format('DELETE FROM %I', name) END;
      END IF;
    END IF;
  END LOOP;
  FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'kept'::regnamespace LOOP
    EXECUTE format('SELECT EXISTS ((TABLE %1$I EXCEPT TABLE kept.%1$I) UNION ALL
      (TABLE kept.%1$I EXCEPT TABLE %1$I))', name) INTO found;
    IF found THEN
      EXECUTE format('DELETE FROM %I', name);
      EXECUTE format('INSERT INTO %1$I TABLE kept.%1$I', name);
    END IF;
  END LOOP;
END $$
"""


def keep() -> None:
    """Copy the rows that the migrations have written: each test is to find them."""
    with connection.cursor() as cursor:
        cursor.execute(_KEEP)


def empty(_: object = None) -> None:
    """Bring the database back to how the migrations left it, after a test that commits."""
    with connection.cursor() as cursor:
        cursor.execute(_EMPTY)
