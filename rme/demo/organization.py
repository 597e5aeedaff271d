"""The demo organization of `make run`, with all that a first request needs.

It is created once. Its secrets are random and stored in `var/demo.json`, which only its owner may
read, because the database holds only their digests.
"""

import json
import os
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction

from messaging.content import templates
from messaging.models import SenderDomain, Template
from push.models import Device, token_digest
from rme.crm.models import Account, Case, Contact, Event, EventRegistration, Exhibitor, Speaker
from rme.tenants import api_keys, applications
from rme.tenants.models import (
    INTEGRATION_GROUP,
    Application,
    ApplicationKey,
    Membership,
    Organization,
    User,
)

DOMAIN = "demo.rme.test"

PEOPLE = [
    ("Olivia", "Reyes", "America/New_York", "en_US", "+12127365000"),
    ("Harry", "Whitlock", "Europe/London", "en_GB", "+447400123456"),
    ("Ruby", "Thornton", "Australia/Lord_Howe", "en_AU", "+61412345678"),
    ("Salma", "Farouk", "Africa/Cairo", "en_US", "+201001234567"),
    ("Arjun", "Menon", "Asia/Kolkata", "en_IN", "+918123456789"),
    ("Lea", "Brunner", "Europe/Zurich", "en_US", "+41781234567"),
]
"""First name, last name, zone, language, mobile number."""

OUTCOMES = ["delivered", "bounce", "complaint", "slow", "down", "reject", "unknown"]
"""The simulator's outcomes, in the order of its numbers +15005550001 to …07."""

TEXTS: dict[str, dict[str, Any]] = {
    "EMAIL": {
        "subject": "A note for {{ contact.first_name }}",
        "text": "Dear {{ contact.first_name }},\n\n{{ note }}\n\n{{ org.name }}\n",
        "html": "<p>Dear {{ contact.first_name }},</p><p>{{ note }}</p><p>{{ org.name }}</p>",
    },
    "SMS": {"text": "{{ org.name }}: {{ note }}"},
    "PUSH": {"title": "A note for {{ contact.first_name }}", "body": "{{ note }}"},
}
NOTE = {
    "type": "object",
    "properties": {"note": {"type": "string", "description": "Any text."}},
    "required": ["note"],
}


def ensure(path: Path, *, base_url: str) -> dict[str, Any]:
    """Create the demo if need be; return the values that `make demo-json` prints."""
    made = json.loads(path.read_text()) if path.exists() else {}
    if not made or not Application.objects.filter(client_id=made["client_id"]).exists():
        with transaction.atomic():
            made = _make()
            _keep(path, made)
    # A demo of an earlier release was not set to the simulator.
    Organization.objects.filter(pk__in=[_id("demo"), _id("other")]).update(simulator=True)
    return {**_addresses(base_url), **made}


def _addresses(base_url: str) -> dict[str, str]:
    return {
        "base_url": f"{base_url}/rme/v1",
        "auth_url": base_url,
        "bot_base_url": f"{base_url}{settings.BOT_BASE_PATH}",
        "admin_url": f"{base_url}/admin/",
    }


def _keep(path: Path, made: dict[str, object]) -> None:
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        json.dump(made, file, indent=2)
    new.replace(path)


def _make() -> dict[str, object]:
    Organization.objects.filter(pk__in=[_id("demo"), _id("other")]).delete()
    demo = _organization("demo", "Demo")
    user = _integration_user("demo-integration")
    _, client_secret, client_id = _application(demo, "Demo", user)
    _, test_secret, test_id = _application(demo, "Demo (test)", user, Application.Mode.TEST)
    signed, _, jwt_id = _application(demo, "Demo (JWT bearer)", user)
    password = _admin(demo)
    people = [_person(demo, index) for index in range(len(PEOPLE))]
    _records(demo, people[0])
    return {
        "admin_user": "admin",
        "admin_password": password,
        "org": demo.pk,
        "client_id": client_id,
        "client_secret": client_secret,
        "api_key": api_keys.issue(demo, "Demo")[1],
        "contact_ids": [str(person.pk) for person in people],
        "contacts_by_zone": {person.zone: str(person.pk) for person in people},
        "contact_emails": {str(person.pk): person.email for person in people},
        "outcome_contacts": {word: str(_actor(demo, i).pk) for i, word in enumerate(OUTCOMES, 1)},
        "integration_user": user.username,
        "jwt_client_id": jwt_id,
        "jwt_private_key_pem": _key(signed),
        "test_client_id": test_id,
        "test_client_secret": test_secret,
        "sender_domain": DOMAIN,
        "templates": {channel: _template(demo, channel) for channel in TEXTS},
        "other": _other(),
    }


def _id(name: str) -> str:
    """Return an organization's id: with several cells, no two have one of the same id."""
    return f"{name}-{settings.CELL}" if settings.CELL else name


def _organization(identifier: str, name: str) -> Organization:
    shown = f"{name} ({settings.CELL})" if settings.CELL else name
    organization = Organization.objects.create(id=_id(identifier), name=shown, simulator=True)
    domain = DOMAIN if identifier == "demo" else f"{identifier}.rme.test"
    SenderDomain.objects.create(
        organization=organization,
        domain=domain,
        name=name,
        is_default=True,
        verified_at=datetime.now(UTC),
    )
    return organization


def _integration_user(name: str) -> User:
    user, _ = User.objects.get_or_create(username=name)
    user.groups.add(Group.objects.get(name=INTEGRATION_GROUP))
    return user


def _application(
    organization: Organization,
    name: str,
    user: User,
    mode: Application.Mode = Application.Mode.LIVE,
) -> tuple[Application, str, str]:
    application, secret = applications.create_application(organization, name, user, mode)
    return application, secret, application.client_id


def _key(application: Application) -> str:
    """Create the key pair that signs assertions; return the private key, which the demo shows."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    ApplicationKey.objects.create(application=application, name="Demo", material=public.decode())
    return private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def _admin(organization: Organization) -> str:
    password = secrets.token_urlsafe(12)
    user, _ = User.objects.get_or_create(
        username="admin", defaults={"is_staff": True, "is_superuser": True}
    )
    user.set_password(password)
    user.save()
    Membership.objects.create(organization=organization, user=user, role=Membership.Role.OWNER)
    return password


def _person(organization: Organization, index: int) -> Contact:
    first, last, zone, language, mobile = PEOPLE[index]
    person = Contact.objects.create(
        organization=organization,
        first_name=first,
        last_name=last,
        email=f"{first}.{last}@people.rme.test".lower(),
        mobile=mobile,
        phone=mobile,
        zone=zone,
        language=language,
    )
    _device(organization, person, f"simulator-delivered-{index + 1}")
    return person


def _actor(organization: Organization, number: int) -> Contact:
    """Create a contact for whom the simulator has one outcome on every channel."""
    word = OUTCOMES[number - 1]
    person = Contact.objects.create(
        organization=organization,
        first_name=word.title(),
        last_name="Simulator",
        email=f"{word}@simulator.rme.test",
        mobile=f"+1500555000{number}",
        language="en_US",
    )
    _device(organization, person, f"simulator-{word}")
    return person


def _device(organization: Organization, person: Contact, token: str) -> None:
    Device.objects.create(
        organization=organization,
        contact_id=str(person.pk),
        platform=Device.Platform.ANDROID,
        app="demo",
        name=f"{person.first_name}'s phone",
        token=token,
        token_digest=token_digest(token),
    )


def _template(organization: Organization, channel: str) -> dict[str, str]:
    template = Template.objects.create(
        organization=organization,
        name="note",
        language="en_US",
        channel=channel,
        category="TRANSACTIONAL",
    )
    version = templates.add_draft(template, {**TEXTS[channel], "variables": NOTE})
    templates.activate(version)
    return {
        "name": template.name,
        "language": template.language,
        "category": template.category,
        "variable": "note",
    }


def _records(organization: Organization, person: Contact) -> None:
    """Create a record of each other kind, related to one contact."""
    account = Account.objects.create(organization=organization, name="Northwind Observatory")
    Contact.objects.filter(pk=person.pk).update(account=account)
    Case.objects.create(
        organization=organization,
        number="00001001",
        subject="Badge does not scan",
        issue="The badge printed at the entrance is refused at the second gate.",
        contact=person,
        account=account,
    )
    starts = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(days=30)
    event = Event.objects.create(
        organization=organization,
        name="Open Sky Congress",
        starts_at=starts,
        ends_at=starts + timedelta(days=2),
    )
    EventRegistration.objects.create(
        organization=organization,
        event=event,
        contact=person,
        name=str(person),
        email=person.email,
        ticket_type="Full pass",
    )
    Speaker.objects.create(
        organization=organization,
        event=event,
        contact=person,
        session_title="Listening to pulsars",
        session_start=starts + timedelta(hours=2),
        room="Hall 1",
    )
    Exhibitor.objects.create(
        organization=organization,
        event=event,
        account=account,
        contact=person,
        booth="B12",
        level="Gold",
    )


def _other() -> dict[str, object]:
    """Make a second organization, which must see nothing of the first."""
    organization = _organization("other", "Other")
    user = _integration_user("other-integration")
    _, secret, client_id = _application(organization, "Other", user)
    person = Contact.objects.create(
        organization=organization,
        first_name="Nora",
        last_name="Quist",
        email="nora.quist@people.rme.test",
        mobile="+4522123456",
        zone="Europe/Copenhagen",
    )
    return {
        "org": organization.pk,
        "client_id": client_id,
        "client_secret": secret,
        "api_key": api_keys.issue(organization, "Other")[1],
        "contact_ids": [str(person.pk)],
    }
