"""`manage.py migrate`: Django's, without blocking the users of the tables.

A change of a table waits for current readers, and later statements wait behind the change. So a
change waits for LOCK_MS at most, lets the others go on, and is tried again a little later.
`--pre-deploy` leaves the migrations that have to wait for the end of the release before.
"""

import time
from contextlib import ExitStack
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.utils.module_loading import import_string
from psycopg.errors import LockNotAvailable

from rme import post_deploy
from rme.core.db import locks
from rme.core.db.partitions import LOCK
from rme.core.db.postgresql import direct

LOCK_MS = 1000
"""How long a migration waits for a lock, and later statements on the table with it."""
TRIES = 40
LONGEST_PAUSE_SECONDS = 15.0
"""The pauses start with a second and double: all tries together take some ten minutes."""

_OLDEST = """
SELECT format('process %s (%s), for %s s', pid, coalesce(nullif(application_name, ''), usename),
              extract(epoch FROM now() - xact_start)::int)
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
ORDER BY xact_start LIMIT 1
"""


class Command(migrate.Command):
    current = "a migration"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--pre-deploy",
            action="store_true",
            help="Leave post-deploy migrations, which wait until all processes are replaced.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        pre_deploy = options.pop("pre_deploy", False)
        if pre_deploy and (options["app_label"] or options["plan"] or options["check_unapplied"]):
            raise CommandError("--pre-deploy goes with no app, --plan or --check.")
        if options["plan"] or options["check_unapplied"]:
            super().handle(*args, **options)
            return
        with ExitStack() as stack:
            if problem := direct.problem():
                raise CommandError(f"{problem}.")
            stack.enter_context(direct.session())
            self._wait_for_others(stack)
            with connections[options["database"]].cursor() as cursor:
                cursor.execute(f"SET lock_timeout = {LOCK_MS}")
                stack.callback(_reset, options["database"])
            if pre_deploy:
                self._migrate_pre_deploy(*args, **options)
            else:
                self._migrate(*args, **options)
            self._finish()

    def _finish(self) -> None:
        """Do what has to be done before a process of the release writes."""
        for path in settings.AFTER_MIGRATIONS:
            try:
                import_string(path)()
            except ImproperlyConfigured as error:
                raise CommandError(str(error)) from error

    def _migrate_pre_deploy(self, *args: Any, **options: Any) -> None:
        """Migrate app by app, to the last migration that may be applied now."""
        connection = connections[options["database"]]
        waiting = post_deploy.waiting(connection)
        if waiting.blocked:
            # Those of the release before were left out, or a migration of this one is out of order.
            raise CommandError(
                f"{waiting.blocked[0]} comes after {waiting.post_deploy[0]}, which is not applied: "
                "run `migrate` once no process of the release before that one runs."
            )
        while pending := post_deploy.waiting(connection).pre_deploy:
            last = {each.app_label: each.name for each in pending}
            app = pending[0].app_label
            self._migrate(*args, **{**options, "app_label": app, "migration_name": last[app]})
        if waiting.post_deploy:
            names = ", ".join(map(str, waiting.post_deploy))
            self._say(f"{names}: left for `migrate` without --pre-deploy.")

    def migration_progress_callback(
        self, action: str, migration: object = None, fake: bool = False
    ) -> None:
        """Store the name of the migration, for the message when it is tried again."""
        if migration is not None:
            self.current = str(migration)
        super().migration_progress_callback(action, migration, fake)

    def _wait_for_others(self, stack: ExitStack) -> None:
        """Take the lock for changes of tables, held by another `migrate` or the periodic job."""
        while True:
            try:
                stack.enter_context(locks.holding([LOCK], time.monotonic() + 5))
            except locks.Busy:
                self._say("Another process is changing the tables; waiting for it.")
            else:
                return

    def _migrate(self, *args: Any, **options: Any) -> None:
        """Migrate; applied migrations stay, so that each try continues where the last failed."""
        for number in range(1, TRIES + 1):
            try:
                super().handle(*args, **options)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
            pause = min(2.0 ** (number - 1), LONGEST_PAUSE_SECONDS)
            self._say(
                f"{self.current}: its tables are in use (try {number} of {TRIES}); "
                f"again in {pause:.0f} s. Oldest transaction: {_oldest(options['database'])}."
            )
            time.sleep(pause)
        raise CommandError(f"{self.current}: its tables were in use all the time. Run it again.")

    def _say(self, sentence: str) -> None:
        self.stderr.write(f"migrate: {sentence}")
        self.stderr.flush()


def _reset(database: str) -> None:
    with connections[database].cursor() as cursor:
        cursor.execute("RESET lock_timeout")


def _oldest(database: str) -> str:
    with connections[database].cursor() as cursor:
        cursor.execute(_OLDEST)
        row = cursor.fetchone()
    return str(row[0]) if row else "none"
