"""What the benchmarks measure on: an organization, a thousand contacts, and processes."""

import os
import secrets
import smtplib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from rme.run import programs

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")
ROOT = Path(__file__).resolve().parent.parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


LINE = "Grüezi – the quick brown fox jumps over the lazy dog while the band plays on. "
"""A line of a mail as people write them: not quite ASCII."""


class Scene:
    """The organization `bench` and a token of its program."""

    def __init__(self) -> None:
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        self._fill()

    def _fill(self) -> None:
        from django.contrib.auth.models import Group
        from django.test import Client

        from messaging.content import templates
        from messaging.models import SenderDomain, Template
        from rme.crm.models import Contact
        from rme.tenants.models import Organization, User
        from rme.tenants.oauth import applications

        Organization.objects.filter(pk="bench").delete()
        User.objects.filter(username="bench").delete()
        org = Organization.objects.create(
            id="bench",
            name="Bench",
            simulator=True,
            calls_per_second=1_000_000,
            calls_per_day=1_000_000_000,
        )
        SenderDomain.objects.create(
            organization=org, domain="bench.example", is_default=True, verified_at=datetime.now(UTC)
        )
        template = Template.objects.create(
            organization=org,
            name="note",
            language="en_US",
            channel="EMAIL",
            category="TRANSACTIONAL",
        )
        texts = {
            "subject": "A note for Zoë {{ contact.first_name }}",
            "text": "Dear {{ contact.first_name }},\n\n{{ note }}\n\n"
            + LINE * 5
            + "{{ org.name }}",
            "html": "<p>Dear {{ contact.first_name }},</p><p>{{ note }}</p><p>" + LINE * 5 + "</p>",
        }
        templates.activate(templates.add_draft(template, texts))
        people = [
            Contact(organization=org, first_name=f"F{i}", last_name="L", email=f"p{i}@x.example")
            for i in range(1000)
        ]
        self.contacts = [str(row.pk) for row in Contact.objects.bulk_create(people)]
        user = User.objects.create(username="bench")
        user.groups.add(Group.objects.get(name="MSG_Integration_User"))
        application, secret = applications.create_application(org, "bench", user)
        answer = Client(headers={"host": "127.0.0.1"}).post(
            "/services/oauth2/token",
            f"grant_type=client_credentials&client_id={application.client_id}"
            f"&client_secret={secret}",
            "application/x-www-form-urlencoded",
        )
        self.token = answer.json()["access_token"]
        self.application_id = application.pk

    def clear(self) -> None:
        """Empty the tables that messages fill."""
        from django.db import connection

        from messaging.models import PARTITIONED

        names = ", ".join(model._meta.db_table for model in PARTITIONED)
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {names}")

    def mail_by(self, port: int) -> None:
        """Let the organization's mail go to a server on this machine."""
        from messaging.models import ProviderAccount

        ProviderAccount.objects.update_or_create(
            organization_id="bench",
            name="sink",
            defaults={
                "kind": "smtp",
                "channel": "EMAIL",
                "credentials": f'{{"host": "127.0.0.1", "port": {port}, "security": "NONE"}}',
            },
        )

    def many(self, count: int, port: int) -> list[tuple[str, str, int]]:
        """Make more organizations, each with a contact, the template `note` and an account at the
        server on `port`. Return what an email of each needs: its id, the contact's, the version's.
        """
        from messaging.models import ProviderAccount, SenderDomain, Template, TemplateVersion
        from rme.crm.models import Contact
        from rme.tenants.models import Organization

        names = [f"bench-{number:05}" for number in range(count)]
        Organization.objects.filter(pk__startswith="bench-").delete()
        Organization.objects.bulk_create(
            (Organization(pk=name, name=name) for name in names), batch_size=1000
        )
        own = TemplateVersion.objects.select_related("template").get(
            template__organization_id="bench"
        )
        templates = Template.objects.bulk_create(
            (
                Template(
                    organization_id=name,
                    name=own.template.name,
                    language=own.template.language,
                    channel=own.template.channel,
                    category=own.template.category,
                )
                for name in names
            ),
            batch_size=1000,
        )
        versions = TemplateVersion.objects.bulk_create(
            (
                TemplateVersion(
                    template=template,
                    version=1,
                    state=own.state,
                    subject=own.subject,
                    text=own.text,
                    html=own.html,
                )
                for template in templates
            ),
            batch_size=1000,
        )
        people = Contact.objects.bulk_create(
            (
                Contact(organization_id=name, first_name="F", last_name="L", email="p@x.example")
                for name in names
            ),
            batch_size=1000,
        )
        SenderDomain.objects.bulk_create(
            (
                SenderDomain(
                    organization_id=name, domain="bench.example", verified_at=datetime.now(UTC)
                )
                for name in names
            ),
            batch_size=1000,
        )
        ProviderAccount.objects.bulk_create(
            (
                ProviderAccount(
                    organization_id=name,
                    name="sink",
                    kind="smtp",
                    channel="EMAIL",
                    credentials=f'{{"host": "127.0.0.1", "port": {port}, "security": "NONE"}}',
                )
                for name in names
            ),
            batch_size=1000,
        )
        return [
            (name, str(contact.pk), version.pk)
            for name, contact, version in zip(names, people, versions, strict=True)
        ]

    def own(self) -> tuple[str, str, int]:
        """Return the same of the organization `bench`."""
        from messaging.models import TemplateVersion

        version = TemplateVersion.objects.get(template__organization_id="bench")
        return "bench", self.contacts[0], version.pk

    def body(self, index: int) -> dict[str, Any]:
        return {
            "channel": "EMAIL",
            "category": "TRANSACTIONAL",
            "to": [{"contactId": self.contacts[index % len(self.contacts)]}],
            "template": {"name": "note", "language": "en_US"},
            "context": {"variables": {"note": secrets.token_hex(8)}},
        }


@contextmanager
def processes(commands: Sequence[Sequence[str]], **env: str) -> Iterator[list[psutil.Process]]:
    """Run programs while the block runs."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env={**os.environ, **env},
            stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]
    try:
        yield [psutil.Process(process.pid) for process in running]
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(20)


def web(application: str, port: int) -> list[str]:
    """Return the command of a web server: ours as it is deployed, a reference's beside it."""
    if application == "rme.asgi:application":
        return programs.web({"PORT": str(port)})[2:]
    return [
        "granian", "--interface", "wsgi", application, "--port", str(port),
        "--workers", "2", "--blocking-threads", "4", "--log-level", "error",
    ]  # fmt: skip


def wait_for_port(port: int) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on {port}")


def taken(port: int) -> int:
    """Ask a sink how many mails it has taken."""
    with smtplib.SMTP("127.0.0.1", port) as client:
        return int(client.docmd("COUN")[1])
