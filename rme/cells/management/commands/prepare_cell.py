"""`manage.py prepare_cell --number N`: make this database that of a cell."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from rme.cells import moving


class Command(BaseCommand):
    help = "Name this cell in its database, and let its keys begin with its number."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--number",
            type=int,
            help="No other cell has it; 0 for a deployment that had no cells before. "
            "Without it only the fingerprints of the secrets are stored anew.",
        )

    def handle(self, *args: object, **options: object) -> None:
        number = options["number"]
        try:
            sequences = moving.prepare(number if isinstance(number, int) else None)
        except moving.NotReady as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"The cell is prepared; {len(sequences)} sequences begin with its number."
        )
