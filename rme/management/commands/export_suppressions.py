"""`manage.py export_suppressions`: write an organization's suppression list as CSV."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, TextIO

from django.core.management.base import BaseCommand, CommandError

from messaging.consent.suppression_export import export
from rme.management import organizations
from rme.tenants import audit
from rme.tenants.audit import Action
from rme.tenants.models import Organization


class Command(BaseCommand):
    help = "Write the suppressions of an organization as CSV, as import_suppressions takes it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, nargs="?", help="Left out: standard output.")
        parser.add_argument("--organization", "--org", required=True, help="The organization's id.")

    def handle(self, *args: Any, **options: Any) -> None:
        organizations.require_here(options["organization"])
        kind = Organization._meta.label_lower
        entry = audit.NewEntry(
            Action.EXPORTED,
            options["organization"],
            kind,
            options["organization"],
            text="suppressions",
        )
        audit.record(audit.COMMAND_LINE, [entry])
        if options["file"] is None:
            self._write(options["organization"], sys.stdout)
            return
        try:
            with options["file"].open("w", encoding="utf-8", newline="") as file:
                self._write(options["organization"], file)
        except OSError as error:
            raise CommandError(str(error)) from error

    def _write(self, organization_id: str, file: TextIO) -> None:
        rows = -1  # the header line is none
        for block in export(organization_id):
            file.write(block)
            rows += block.count("\n")
            self.stderr.write(f"\r{rows:,} rows", ending="")
        self.stderr.write("")
