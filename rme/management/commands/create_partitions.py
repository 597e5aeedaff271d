"""`manage.py create_partitions`: create the partitions of the next months now."""

from django.core.management.base import BaseCommand, CommandError

from messaging.models import PARTITIONED
from rme.core.db import clock, partitions


class Command(BaseCommand):
    help = "Create missing partitions, and move rows from the default partitions to them."

    def handle(self, *args: object, **options: object) -> None:
        tables = [model._meta.db_table for model in PARTITIONED]
        now = clock.now()
        for name in partitions.create_ahead(tables, now=now):
            self.stdout.write(name)
        if left := partitions.missing(tables, now=now):
            names = ", ".join(each.name for each in left)
            raise CommandError(f"The tables are in use; not created: {names}. Try again.")
