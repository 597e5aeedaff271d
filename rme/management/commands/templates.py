"""`manage.py templates pull|push`: templates as files in a folder, such as a repository."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from messaging.content.files import folders, pull, push
from messaging.content.files.file_types import SUFFIX, FilesRefused
from rme.management import organizations
from rme.tenants import audit
from rme.tenants.audit import Action
from rme.tenants.models import Organization


class Command(BaseCommand):
    help = "Write an organization's templates to a folder (pull), or take them from there (push)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("direction", choices=["pull", "push"])
        parser.add_argument("folder", type=Path)
        parser.add_argument("--organization", required=True, help="The organization's id.")
        parser.add_argument("--publish", action="store_true", help="push: make all active.")
        parser.add_argument("--dry-run", action="store_true", help="Change nothing; report only.")

    def handle(self, *args: Any, **options: Any) -> None:
        organization_id, folder = options["organization"], options["folder"]
        organizations.require_here(organization_id)
        try:
            if options["direction"] == "pull":
                self._pull(organization_id, folder, dry_run=options["dry_run"])
            else:
                self._push(organization_id, folder, **_chosen(options))
        except (FilesRefused, OSError) as error:
            raise CommandError(str(error)) from error

    def _pull(self, organization_id: str, folder: Path, *, dry_run: bool) -> None:
        """Write what differs; files of templates that are not there are named and stay."""
        unmatched_paths = set(folders.paths(folder))
        for path, content in pull.pull(organization_id):
            unmatched_paths.discard(path)
            old_content = folders.read(folder, path)
            kind = "created" if old_content is None else "changed"
            kind = "unchanged" if old_content == content else kind
            self.stdout.write(f"{kind:<10}{path}")
            if kind != "unchanged" and not dry_run:
                folders.write(folder, path, content)
        for path in sorted(unmatched_paths):
            self.stdout.write(f"{'not there':<10}{path}")
        if not dry_run:
            kind = Organization._meta.label_lower
            entry = audit.NewEntry(
                Action.EXPORTED, organization_id, kind, organization_id, text="templates"
            )
            audit.record(audit.COMMAND_LINE, [entry])

    def _push(self, organization_id: str, folder: Path, *, publish: bool, dry_run: bool) -> None:
        files = folders.files(folder)
        if not files:
            raise CommandError(f"There is no file that ends with {SUFFIX} in {folder}.")
        changes = push.push(
            organization_id, files, audit.COMMAND_LINE, publish=publish, dry_run=dry_run
        )
        for change in changes:
            active = " and made active" if change.is_published else ""
            self.stdout.write(f"{change.kind:<10}{change.path}{active}")
        if dry_run:
            self.stdout.write("This was a dry run: nothing was stored.")


def _chosen(options: dict[str, Any]) -> dict[str, bool]:
    return {name: bool(options[name]) for name in ("publish", "dry_run")}
