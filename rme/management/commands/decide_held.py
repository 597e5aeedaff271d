"""`manage.py decide_held`: decide deliveries in manual review, whose outcome is unknown."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from messaging.delivery import manual_review
from messaging.delivery.manual_review import Decision
from messaging.models import Delivery
from rme.tenants.models import Organization, User

BATCH = 1000
LOG_NAME = "command-line"
"""The user in the change log if --user is not given; the account cannot log in."""


class Command(BaseCommand):
    help = "Send again, or give up, deliveries in manual review, whose outcome is unknown."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--organization", required=True, metavar="ID")
        parser.add_argument(
            "--reason", required=True, help="Stored in the events and the change log."
        )
        parser.add_argument(
            "--message",
            nargs="+",
            action="extend",
            type=UUID,
            metavar="ID",
            help="Messages to decide; without any: all deliveries in manual review.",
        )
        parser.add_argument("--user", help="The user to name in the change log.")
        decision = parser.add_mutually_exclusive_group(required=True)
        for name, value in (("--send-again", Decision.SEND_AGAIN), ("--give-up", Decision.GIVE_UP)):
            decision.add_argument(name, dest="decision", action="store_const", const=value)

    def handle(self, *args: Any, **options: Any) -> None:
        organization_id, reason = options["organization"], options["reason"].strip()[:500]
        if not Organization.objects.filter(pk=organization_id).exists():
            raise CommandError("There is no such organization.")
        if not reason:
            raise CommandError("The reason must not be empty.")
        user_id = _user(options["user"]).pk
        rows = Delivery.objects.filter(
            manual_review.HELD, organization_id=organization_id
        ).order_by("pk")
        if options["message"]:
            rows = rows.filter(message_id__in=options["message"])
        count, keys = 0, list(rows.values_list("pk", flat=True)[:BATCH])
        while keys:
            moved = manual_review.decide(
                organization_id, keys, options["decision"], reason=reason, user_id=user_id
            )
            count += len(moved)
            keys = list(rows.filter(pk__gt=keys[-1]).values_list("pk", flat=True)[:BATCH])
        self.stdout.write(f"{options['decision']}: {count:,}")


def _user(name: str | None) -> User:
    if name is None:
        user, _ = User.objects.get_or_create(
            username=LOG_NAME, defaults={"is_active": False, "password": "!"}
        )
        return user
    found = User.objects.filter(username=name).first()
    if found is None:
        raise CommandError("There is no such user.")
    return found
