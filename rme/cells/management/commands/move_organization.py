"""`manage.py move_organization ORG --to CELL`: move an organization to another cell."""

from argparse import ArgumentParser
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from rme.cells import moving, pauses


class Command(BaseCommand):
    help = (
        "Move an organization from this cell to another, whose database MOVE_DATABASE_URL names. "
        "A move that was interrupted goes on when the command is given again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("organization")
        parser.add_argument("--to", required=True, metavar="CELL")
        limits = moving.MoveLimits()
        for phase in ("leaving", "pause"):
            seconds = getattr(limits, f"{phase}_seconds")
            parser.add_argument(
                f"--{phase}-seconds",
                type=float,
                default=seconds,
                help="If that phase would take longer, the organization goes on here "
                f"({seconds:.0f}).",
            )
        modes = parser.add_mutually_exclusive_group()
        modes.add_argument("--abort", action="store_true", help="Undo a move before its switch.")
        modes.add_argument(
            "--drop", action="store_true", help="Delete the rows that a finished move left here."
        )

        modes.add_argument(
            "--left-cell-is-lost",
            action="store_true",
            help="In the target, for a move that was killed after it had compared the rows: serve "
            "the organization here, as the cell that it left never comes back.",
        )
        parser.add_argument(
            "--late-too",
            action="store_true",
            help="With --drop: also rows that were written here after the switch.",
        )

    def handle(self, *args: object, **options: Any) -> None:
        if options["left_cell_is_lost"]:
            self._take_over(options["organization"], options["to"])
            return
        if not settings.CELL or not settings.MOVE_DATABASE_URL:
            raise CommandError("CELL and MOVE_DATABASE_URL must be set.")
        expected_errors = (
            *(moving.MoveRefused, moving.NotReady, moving.TakesTooLong, moving.RowDifference),
            *(moving.KeysOverlap, moving.UnknownTables, moving.NoSession, moving.LateRows),
            psycopg.Error,
        )
        databases = moving.MoveDatabases.to(options["to"])
        try:
            with moving.opened(databases, options["organization"], self._say) as mover:
                self._run(mover, options)
        except expected_errors as error:
            raise CommandError(str(error)) from error

    def _take_over(self, organization_id: str, cell: str) -> None:
        if not settings.CELL or cell != settings.CELL:
            raise CommandError("Give this command in the cell that the organization moves to.")
        try:
            pauses.take_over(organization_id)
        except pauses.NotTakenOver as error:
            raise CommandError(str(error)) from error
        self._say(f"{cell} serves it")

    def _run(self, mover: moving.Mover, options: dict[str, Any]) -> None:
        if options["abort"]:
            mover.abort()
            self._say("the move is undone")
        elif options["drop"]:
            self._say(f"deleted {mover.drop_left(late_too=options['late_too']):,} rows")
        else:
            limits = moving.MoveLimits(options["leaving_seconds"], options["pause_seconds"])
            self._report(mover.move(limits))

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
