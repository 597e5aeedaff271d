"""`manage.py verify_consent`: check the consent ledger for changes."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from messaging.consent import ledger
from rme.tenants.models import Organization


class Command(BaseCommand):
    help = "Check the chain of digests of the consent ledger; the exit code is 1 if it is broken."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--organization", "--org", metavar="ID", help="One organization; none: all."
        )

    def handle(self, *args: object, **options: object) -> None:
        organizations = Organization.objects.order_by("id").values_list("id", flat=True)
        if options["organization"]:
            organizations = organizations.filter(id=options["organization"])
            if not organizations:
                raise CommandError(f"There is no organization {options['organization']}.")
        broken = [name for name in organizations if not self._check(name)]
        if broken:
            raise CommandError(f"The ledger does not hold: {', '.join(broken)}.")

    def _check(self, organization_id: str) -> bool:
        result = ledger.verify(organization_id)
        if result.broken:
            self.stdout.write(
                f"{organization_id}: entry {result.broken} does not fit; "
                f"the {result.entries} before it do."
            )
            return False
        self.stdout.write(
            f"{organization_id}: {result.entries} entries hold, {result.erased} of them erased; "
            f"head {result.head or '-'}"
        )
        return True
