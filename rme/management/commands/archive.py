"""`manage.py archive`: the files of the archive, and whether they are as they were written."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db.models import Count, Sum

from messaging.models import ArchiveErasure, ArchiveFile
from messaging.store.archived import archive
from rme.core import ids
from rme.core.db import clock


class Command(BaseCommand):
    help = "List, verify or run the archive of old messages."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["status", "list", "verify", "run"])
        parser.add_argument("--organization", "--org", help="The files of one organization alone.")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.ARCHIVE is None:
            raise CommandError("There is no archive: ARCHIVE_URL is not set.")
        from messaging.archive import job  # a package that is loaded where there is an archive

        files = ArchiveFile.objects.filter(state=ArchiveFile.State.LIVE).defer("contacts")
        if options["organization"]:
            files = files.filter(organization_id=options["organization"])
        match options["action"]:
            case "list":
                for file in files.order_by("organization_id", "last_id").iterator():
                    self._show(file)
            case "verify":
                self._verify(files.order_by("pk"))
            case "run":
                job.run(now=clock.now(), at_once=True)
        total = files.aggregate(files=Count("pk"), messages=Sum("messages"), size=Sum("size"))
        self.stdout.write(
            f"{total['files']:,} files, {total['messages'] or 0:,} messages, "
            f"{total['size'] or 0:,} bytes; {ArchiveErasure.objects.count():,} erasures pending"
        )
        if problem := archive().problem(clock.now()):
            self.stdout.write(f"The archive {problem}.")

    def _show(self, file: ArchiveFile) -> None:
        first, last = ids.moment(file.first_id), ids.moment(file.last_id)
        self.stdout.write(
            f"{file.path} {file.messages:,} messages, {file.size:,} bytes, "
            f"{first:%Y-%m-%d %H:%M:%S} to {last:%H:%M:%S}"
        )

    def _verify(self, files: Any) -> None:
        from messaging.archive import contact_files  # it imports pyarrow

        broken = 0
        for file, text in contact_files.problems(files.iterator()):
            if text:
                broken += 1
                self.stdout.write(f"{file.path}: {text}")
        if broken:
            raise CommandError(f"{broken} files are not as they were written.")
