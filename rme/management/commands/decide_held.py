"""`manage.py decide_held`: decide deliveries in manual review, whose outcome is unknown."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from messaging.delivery import manual_review
from messaging.delivery.manual_review import Decision
from messaging.models import Delivery
from rme.management import organizations
from rme.tenants import audit
from rme.tenants.models import User

BATCH = 1000


class Command(BaseCommand):
    help = "Send again, or give up, deliveries in manual review, whose outcome is unknown."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--organization", required=True, metavar="ID")
        parser.add_argument("--reason", required=True, help="Stored in the events and the audit.")
        parser.add_argument(
            "--message",
            nargs="+",
            action="extend",
            type=UUID,
            metavar="ID",
            help="Messages to decide; without any: all deliveries in manual review.",
        )
        parser.add_argument("--user", help="The user to name in the audit.")
        decision = parser.add_mutually_exclusive_group(required=True)
        for name, value in (("--send-again", Decision.SEND_AGAIN), ("--give-up", Decision.GIVE_UP)):
            decision.add_argument(name, dest="decision", action="store_const", const=value)

    def handle(self, *args: Any, **options: Any) -> None:
        organization_id, reason = options["organization"], options["reason"].strip()[:500]
        organizations.require_here(organization_id)
        if not reason:
            raise CommandError("The reason must not be empty.")
        actor = _actor(options["user"])
        rows = Delivery.objects.filter(
            manual_review.HELD, organization_id=organization_id
        ).order_by("pk")
        if options["message"]:
            rows = rows.filter(message_id__in=options["message"])
        count, keys = 0, list(rows.values_list("pk", flat=True)[:BATCH])
        while keys:
            moved = manual_review.decide(
                organization_id, keys, options["decision"], reason=reason, actor=actor
            )
            count += len(moved)
            keys = list(rows.filter(pk__gt=keys[-1]).values_list("pk", flat=True)[:BATCH])
        self.stdout.write(f"{options['decision']}: {count:,}")


def _actor(name: str | None) -> audit.Actor:
    if name is None:
        return audit.COMMAND_LINE
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError("This user doesn't exist.")
    return audit.Actor(user.pk, user.get_username())
