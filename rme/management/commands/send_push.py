"""`manage.py send_push`: send a push to one contact, with a fallback if wanted."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from messaging.accept import send_push
from rme.core.errors import ApiError


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(text)
    return name, value


class Command(BaseCommand):
    help = "Send a push to one contact, and print the result as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--organization", "--org", metavar="ID", required=True, help="The organization."
        )
        parser.add_argument("--contact", metavar="ID", required=True, help="The contact.")
        parser.add_argument("--title", required=True)
        parser.add_argument("--body", required=True)
        parser.add_argument(
            "--data", metavar="NAME=VALUE", action="append", type=_pair, default=[],
            help="Data for the app; may be repeated.",
        )  # fmt: skip
        parser.add_argument("--badge", type=int)
        parser.add_argument(
            "--channels", default="PUSH", help="In the order to try, like PUSH,SMS."
        )
        parser.add_argument("--strategy", default="FIRST_REACHABLE")
        parser.add_argument("--category", default="TRANSACTIONAL")
        parser.add_argument("--idempotency-key")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = send_push(
                options["organization"],
                options["contact"],
                title=options["title"],
                body=options["body"],
                data=dict(options["data"]) or None,
                badge=options["badge"],
                channels=options["channels"].split(","),
                strategy=options["strategy"],
                category=options["category"],
                idempotency_key=options["idempotency_key"],
            )
        except ApiError as error:
            suffix = f" (message {error.message_id})" if error.message_id else ""
            raise CommandError(f"{error.code}: {error.message}{suffix}") from error
        self.stdout.write(json.dumps(asdict(result)))
