"""`manage.py move_organization ORG --to CELL`: move an organization to another cell."""

from argparse import ArgumentParser
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from rme.tenants.cells import moving


class Command(BaseCommand):
    help = (
        "Move an organization from this cell to another, whose database MOVE_DATABASE_URL names. "
        "A move that was interrupted goes on when the command is given again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("organization")
        parser.add_argument("--to", required=True, metavar="CELL")
        parser.add_argument(
            "--pause-seconds",
            type=float,
            default=30.0,
            help="If the pause would take longer, the organization goes on here (30).",
        )
        after = parser.add_mutually_exclusive_group()
        after.add_argument("--abort", action="store_true", help="Undo a move before its switch.")
        after.add_argument(
            "--drop", action="store_true", help="Delete the rows that a finished move left here."
        )

    def handle(self, *args: object, **options: Any) -> None:
        if not settings.CELL or not settings.MOVE_DATABASE_URL:
            raise CommandError("CELL and MOVE_DATABASE_URL must be set.")
        ends = moving.Ends(
            settings.DATABASES["default"],
            moving.of_url(settings.MOVE_DATABASE_URL),
            options["to"],
        )
        known = (
            *(moving.Refused, moving.NotReady, moving.TakesTooLong, moving.Differs),
            *(moving.KeysOverlap, moving.UnknownTables, psycopg.Error),
        )
        try:
            with moving.opened(ends, options["organization"], self._say) as mover:
                self._run(mover, options)
        except known as error:
            raise CommandError(str(error)) from error

    def _run(self, mover: moving.Mover, options: dict[str, Any]) -> None:
        if options["abort"]:
            mover.abort()
            self._say("the move is undone")
        elif options["drop"]:
            self._say(f"deleted {mover.drop_left():,} rows")
        else:
            self._report(mover.move(options["pause_seconds"]))

    def _report(self, report: moving.Report) -> None:
        rows = sum(digest.rows for digest in report.digests.values())
        self._say(
            f"moved from {report.source} to {report.target}: {rows:,} rows, the same on both; "
            f"{report.copied:,} copied at first, {report.caught_up:,} caught up with, "
            f"{report.difference:,} within the pause"
        )
        for name, seconds in report.seconds.items():
            self._say(f"{name}: {seconds * 1000:,.0f} ms")
        for old, new in report.renamed.items():
            self._say(f"the user {old} is {new} there, where that name was another's")

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
