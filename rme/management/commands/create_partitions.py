"""`manage.py create_partitions`: create the partitions of the time ahead now."""

from django.core.management.base import BaseCommand, CommandError

from messaging.models import partition_periods
from rme.core.db import clock, partitions
from rme.tenants.audit import request_log


class Command(BaseCommand):
    help = "Create missing partitions, and move rows from the default partitions to them."

    def handle(self, *args: object, **options: object) -> None:
        now = clock.now()
        uncreated: list[partitions.Partition] = []
        for table, period in {**partition_periods(), **request_log.partition_periods()}.items():
            for name in partitions.create_ahead([table], now=now, period=period):
                self.stdout.write(name)
            uncreated += partitions.missing([table], now=now, period=period)
        if uncreated:
            names = ", ".join(each.name for each in uncreated)
            raise CommandError(f"The tables are in use; not created: {names}. Try again.")
