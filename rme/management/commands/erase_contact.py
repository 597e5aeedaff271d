"""`manage.py erase_contact`: erase a person's data from one organization."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from messaging.consent import erasure
from messaging.consent.privacy import answers
from rme.management import organizations


class Command(BaseCommand):
    help = "Erase a person's data from one organization, for good."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("contact_id")
        parser.add_argument("--organization", "--org", required=True, help="The organization's id.")
        parser.add_argument("--yes", action="store_true", help="Erase; without it, only count.")

    def handle(self, *args: Any, **options: Any) -> None:
        organization_id, contact_id = options["organization"], options["contact_id"]
        organizations.require_here(organization_id)
        with transaction.atomic():
            erased = erasure.erase(organization_id, contact_id)
            if summary := answers.in_words(erased.counts):
                is_waiting = bool(erased.under_way)
                answers.record(
                    answers.Kind.ERASURE, organization_id, contact_id, summary, waits=is_waiting
                )
            transaction.set_rollback(not options["yes"])
        for name, count in erased.counts.items():
            self.stdout.write(f"{name:<14} {count:>8,}")
        if erased.under_way:
            self.stdout.write(
                f"{erased.under_way} being sent right now: a worker erases them within minutes."
            )
        if not options["yes"]:
            self.stdout.write("Nothing was erased yet. To erase it for good, add --yes.")
