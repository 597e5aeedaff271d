"""`manage.py import_suppressions`: put a CSV file on an organization's suppression list."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from messaging.consent import suppression_import
from messaging.models import SuppressionImport
from rme.core.addresses import Digits
from rme.core.csv_lines import write_rows
from rme.management import organizations

RUNNING = SuppressionImport.State.RUNNING
DONE = """{run.name}: {run.done:,} of {run.rows:,} rows. {run.added:,} added, {run.replaced:,} \
replaced, {run.unchanged:,} there already, {run.rejected:,} bad. Read as {run.read_as}."""


class Command(BaseCommand):
    help = "Import suppressions from a CSV file: channel,address,contactId,reason,note,expiresAt."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--organization", "--org", required=True, help="The organization's id.")
        parser.add_argument(
            "--digits",
            choices=[each.lower() for each in Digits],
            default=Digits.UNSAID.lower(),
            help="How to read phone numbers without +. `unsaid` refuses ambiguous ones.",
        )
        parser.add_argument("--report", type=Path, help="Write the bad rows to this CSV file.")

    def handle(self, *args: Any, **options: Any) -> None:
        run = self._start(
            options["organization"], options["file"], Digits(options["digits"].upper())
        )
        try:
            while run.state == RUNNING:
                run = suppression_import.step(run.pk)
                self.stderr.write(f"\r{run.done:,} of {run.rows:,} rows", ending="")
        except KeyboardInterrupt:
            suppression_import.cancel(run.organization_id, run.pk)
            raise CommandError("Cancelled. What was imported stays.", returncode=130) from None
        self.stderr.write("")
        self.stdout.write(DONE.format(run=run))
        if options["report"]:
            with options["report"].open("w", encoding="utf-8", newline="") as report:
                report.writelines(write_rows(suppression_import.rejected_rows(run)))

    def _start(self, organization_id: str, path: Path, digits: Digits) -> SuppressionImport:
        organizations.require_here(organization_id)
        try:
            with path.open("rb") as file:
                return suppression_import.start(
                    organization_id, path.name, file, "manage.py", digits=digits
                )
        except (suppression_import.Unreadable, OSError) as error:
            raise CommandError(str(error)) from error
