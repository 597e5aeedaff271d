"""`manage.py hold_after_restore`: hold what may have been sent after the moment of a restore."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Count

from messaging.delivery import manual_review
from messaging.models import Delivery
from rme.core.db import clock

REASON = "the database was restored to a moment before it was due: it may have been sent"


class Command(BaseCommand):
    help = (
        "After a restore to the past and before the workers start: put all deliveries that were "
        "due until the lost service stopped into manual review, as nobody knows which it sent."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--until",
            required=True,
            type=_instant,
            metavar="TIME",
            help="When the lost service stopped sending, like 2026-01-31T12:00:00Z.",
        )
        parser.add_argument("--yes", action="store_true", help="Hold; without it, only count.")

    def handle(self, *args: Any, **options: Any) -> None:
        until: datetime = options["until"]
        if until > clock.now():
            raise CommandError("--until is in the future.")
        if options["yes"]:
            counts = dict(manual_review.hold_doubtful(until, REASON))
        else:
            doubtful = Delivery.objects.filter(manual_review.doubtful(until))
            rows = doubtful.values_list("organization_id", "status")
            counted_rows = rows.annotate(count=Count("pk")).order_by()
            counts = {(organization, status): count for organization, status, count in counted_rows}
        for (organization, status), count in sorted(counts.items()):
            self.stdout.write(f"{organization:<24} {status:<10} {count:>10,}")
        if options["yes"]:
            self.stdout.write(f"Held: {sum(counts.values()):,}")
        else:
            self.stdout.write("Nothing was held yet. To hold it, add --yes.")


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("it needs a time zone")
    return moment
