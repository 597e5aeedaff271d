"""`manage.py export_contact`: write everything that is stored on a person as JSON."""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from messaging.consent import data_export
from messaging.consent.privacy import answers
from rme.crm.models import Contact
from rme.management import organizations
from rme.tenants import audit
from rme.tenants.audit import Action


class Command(BaseCommand):
    help = "Write all data that one organization stores about a contact, as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("contact_id")
        parser.add_argument("--organization", "--org", required=True, help="The organization's id.")
        parser.add_argument("--output", type=Path, help="A new file; else standard output.")

    def handle(self, *args: Any, **options: Any) -> None:
        organizations.require_here(options["organization"])
        content = data_export.export_contact(options["organization"], options["contact_id"])
        if content is None:
            raise CommandError("Nothing is stored on this contact in this organization.")
        kind, key = Contact._meta.label_lower, options["contact_id"]
        entry = audit.NewEntry(
            Action.EXPORTED, options["organization"], kind, key, text="all of a person"
        )
        audit.record(audit.COMMAND_LINE, [entry])
        result = answers.summary_of(content)
        answers.record(answers.Kind.EXPORT, options["organization"], key, result, waits=False)
        text = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        if options["output"] is None:
            self.stdout.write(text.decode(), ending="")
            return
        _write(options["output"], text)


def _write(path: Path, text: bytes) -> None:
    """Write a new file that only its owner may read; an existing one may be open to others."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
