"""`manage.py reencrypt_secrets`: encrypt all secrets at rest with the first of FIELD_KEYS."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from rme.core.db import reencryption
from rme.tenants.access import factor_secrets


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
        found = [
            *reencryption.reencrypt(change=not check),
            factor_secrets.reencrypt(change=not check),
        ]
        for each in found:
            done = "need an older key" if check else "re-encrypted"
            self.stdout.write(
                f"{each.name}: {each.current:,} had the first key, {each.old:,} {done}, "
                f"{len(each.unreadable):,} unreadable"
            )
            for key in each.unreadable:
                self.stderr.write(f"{each.name}: no key decrypts the row {key}")
        unreadable = sum(len(each.unreadable) for each in found)
        old = sum(each.old for each in found)
        if unreadable:
            raise CommandError(f"No key decrypts {unreadable:,} values; see above.")
        if check and old:
            raise CommandError(f"{old:,} values need an older key.")
