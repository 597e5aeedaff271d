"""`manage.py demo`: create the demo organization and print how to reach it."""

import json
from argparse import ArgumentParser

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from rme import demo

SUMMARY = """
rme is up.

  Admin        {admin_url}
               {admin_user} / {admin_password}
  API          {base_url}       description: {base_url}/docs
  client id    {client_id}
  secret       {client_secret}
  Bots         {bot_base_url}       org: {org}
  bot API key  {api_key}

Send something:

  TOKEN=$(curl -s {auth_url}/services/oauth2/token -d grant_type=client_credentials \\
    -d client_id={client_id} -d client_secret={client_secret} | \\
    sed 's/.*"access_token": *"\\([^"]*\\)".*/\\1/')

  curl -s {base_url}/messages -H "Authorization: Bearer $TOKEN" \\
    -H 'Content-Type: application/json' -d '{{
      "channel": "EMAIL", "category": "TRANSACTIONAL",
      "to": [{{"contactId": "{contact_id}"}}],
      "template": {{"name": "note", "language": "en_US"}},
      "context": {{"variables": {{"note": "Hello from rme"}}}}
    }}'

{mail}
Ctrl-C stops everything; the next `make run` goes on with the same data.
"""


class Command(BaseCommand):
    help = "Create the demo organization (once) and print how to reach it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print all of it as JSON.")
        parser.add_argument("--migrate", action="store_true", help="Migrate the database first.")

    def handle(self, *args: object, **options: object) -> None:
        if options["migrate"]:  # a process of its own would load all modules once more
            call_command("migrate", verbosity=0)
        printed = demo.ensure(settings.VAR / "demo.json", base_url=settings.BASE_URL)
        if settings.SMTP_URL:
            try:
                demo.use_mail_server(settings.SMTP_URL, printed["org"])
            except ValueError as error:
                raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(printed, indent=2))
            return
        mail = (
            "Email goes out by SMTP_URL."
            if settings.SMTP_URL
            else "Nothing leaves this machine: the simulator takes it (admin, Outbox).\n"
            "For real email: make run SMTP_URL=smtp://user:password@mail.example:587"
        )
        self.stdout.write(
            SUMMARY.format(**printed, contact_id=printed["contact_ids"][0], mail=mail)
        )
