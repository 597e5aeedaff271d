"""`manage.py reencrypt_secrets`: encrypt all secrets at rest with the first of FIELD_KEYS."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from rme.core.db import reencryption
from rme.tenants.access import adapters


class Command(BaseCommand):
    help = "Encrypt all secrets in the database with the first of FIELD_KEYS."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="Change nothing; exit with 1 if something needs another key than the first.",
        )

    def handle(self, *args: object, **options: object) -> None:
        check = options["check"]
        columns = [
            *reencryption.reencrypt(change=not check),
            adapters.reencrypt_factors(change=not check),
        ]
        for column in columns:
            old_state = "need an older key" if check else "re-encrypted"
            self.stdout.write(
                f"{column.name}: {column.current:,} had the first key, {column.old:,} {old_state}, "
                f"{len(column.unreadable):,} unreadable"
            )
            for key in column.unreadable:
                self.stderr.write(f"{column.name}: no key decrypts the row {key}")
        unreadable = sum(len(column.unreadable) for column in columns)
        old = sum(column.old for column in columns)
        if unreadable:
            raise CommandError(f"No key decrypts {unreadable:,} values; see above.")
        if check and old:
            raise CommandError(f"{old:,} values need an older key.")
