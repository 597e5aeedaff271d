"""The demo organization of `make run`, with all that a first request needs.

Each start recreates missing parts. The secrets are random and stored in `var/demo.json`, which only
its owner may read, because the database only holds their digests.
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
from rme.core import ids
from rme.crm.models import Account, Case, Contact, Event, EventRegistration, Exhibitor, Speaker
from rme.demo import ownership
from rme.demo.ownership import Values
from rme.tenants.models import (
    INTEGRATION_GROUP,
    ApiKey,
    Application,
    ApplicationKey,
    Membership,
    Organization,
    User,
)
from rme.tenants.oauth import api_keys, applications

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
    """Create missing parts of the demo; return the values that `make demo-json` prints.

    It deletes nothing, and only changes rows that it created. Deleted parts are created again, with
    other ids if somebody else uses the old ones now.
    """
    contents: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    with transaction.atomic():
        trusted = contents if ownership.is_of_this_database(contents) else {}
        values = {**_demo(trusted), "other": _other(trusted.get("other", {}))}
        if values != contents:
            _keep(path, values)
    return {**_addresses(base_url), **values}


def _addresses(base_url: str) -> dict[str, str]:
    return {
        "base_url": f"{base_url}/rme/v1",
        "auth_url": base_url,
        "bot_base_url": f"{base_url}{settings.BOT_BASE_PATH}",
        "admin_url": f"{base_url}/admin/",
    }


def _keep(path: Path, values: dict[str, object]) -> None:
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        json.dump(values, file, indent=2)
    new.replace(path)


def _demo(values: Values) -> dict[str, Any]:
    existing = ownership.find("demo", values)
    demo = existing or _organization("demo", "Demo")
    user = _integration_user("demo-integration", values)
    client_id, client_secret = _application(demo, "Demo", user, values)
    test_id, test_secret = _application(demo, "Demo (test)", user, values, "test_")
    jwt_id, jwt_key = _signing_application(demo, user, values)
    admin_user, admin_password = _admin(demo, values)
    people = [_person(demo, index) for index in range(len(PEOPLE))]
    if existing is None:
        _records(demo, people[0])
    return {
        "admin_user": admin_user,
        "admin_password": admin_password,
        "org": demo.pk,
        "client_id": client_id,
        "client_secret": client_secret,
        "api_key": _api_key(demo, values),
        "contact_ids": [str(person.pk) for person in people],
        "contacts_by_zone": {person.zone: str(person.pk) for person in people},
        "contact_emails": {str(person.pk): person.email for person in people},
        "outcome_contacts": {word: str(_actor(demo, i).pk) for i, word in enumerate(OUTCOMES, 1)},
        "integration_user": user.username,
        "jwt_client_id": jwt_id,
        "jwt_private_key_pem": jwt_key,
        "test_client_id": test_id,
        "test_client_secret": test_secret,
        "sender_domain": DOMAIN,
        "templates": {channel: _template(demo, channel) for channel in TEXTS},
    }


def _organization(part: str, name: str) -> Organization:
    organization = Organization.objects.create(
        id=ownership.free_id(part),
        name=ownership.shown_name(name),
        simulator=True,
        demo_part=part,
    )
    domain = DOMAIN if part == "demo" else f"{part}.rme.test"
    SenderDomain.objects.create(
        organization=organization,
        domain=domain,
        name=name,
        is_default=True,
        verified_at=datetime.now(UTC),
    )
    return organization


def _integration_user(name: str, values: Values) -> User:
    stored_name = values.get("integration_user", name if values else "")
    user = User.objects.filter(username=stored_name).first()
    if user is None:
        user = User.objects.create(username=ownership.free_user_name(name))
        user.groups.add(Group.objects.get(name=INTEGRATION_GROUP))
    return user


def _application(
    organization: Organization, name: str, user: User, values: Values, prefix: str = ""
) -> tuple[str, str]:
    """Return the id and secret of an application; create it if it is missing."""
    client_id = values.get(f"{prefix}client_id", "")
    if Application.objects.filter(organization=organization, client_id=client_id).exists():
        return client_id, values[f"{prefix}client_secret"]
    mode = Application.Mode.TEST if prefix == "test_" else Application.Mode.LIVE
    application, secret = applications.create_application(organization, name, user, mode)
    return application.client_id, secret


def _signing_application(organization: Organization, user: User, values: Values) -> tuple[str, str]:
    """Return the id and private key of the application with a key; create it if it is missing."""
    client_id = values.get("jwt_client_id", "")
    if Application.objects.filter(organization=organization, client_id=client_id).exists():
        return client_id, values["jwt_private_key_pem"]
    application, _ = applications.create_application(organization, "Demo (JWT bearer)", user)
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    ApplicationKey.objects.create(application=application, name="Demo", material=public.decode())
    key = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return application.client_id, key.decode()


def _api_key(organization: Organization, values: Values) -> str:
    """Return a key of the bot API; create it if it is missing or revoked."""
    key: str = values.get("api_key", "")
    public_id = key.split("_")[1] if key.count("_") > 1 else ""
    rows = ApiKey.objects.filter(organization=organization, public_id=public_id, revoked_at=None)
    return key if rows.exists() else api_keys.issue(organization, organization.name)[1]


def _admin(organization: Organization, values: Values) -> tuple[str, str]:
    """Return the name and password of the superuser; create one if it is missing."""
    name = values.get("admin_user", "")
    if User.objects.filter(username=name).exists():
        return name, values["admin_password"]
    password = secrets.token_urlsafe(12)
    user = User.objects.create_user(
        ownership.free_user_name("admin"), password=password, is_staff=True, is_superuser=True
    )
    Membership.objects.create(organization=organization, user=user, role=Membership.Role.OWNER)
    return user.username, password


def _person(organization: Organization, index: int) -> Contact:
    first, last, zone, language, mobile = PEOPLE[index]
    email = f"{first}.{last}@people.rme.test".lower()
    if existing := _contact(organization, email):
        return existing
    person = Contact.objects.create(
        organization=organization,
        first_name=first,
        last_name=last,
        email=email,
        mobile=mobile,
        phone=mobile,
        zone=zone,
        language=language,
    )
    _device(organization, person, f"simulator-delivered-{index + 1}")
    return person


def _actor(organization: Organization, number: int) -> Contact:
    """Return a contact for whom the simulator has the same outcome on every channel."""
    word = OUTCOMES[number - 1]
    email = f"{word}@simulator.rme.test"
    if contact := _contact(organization, email):
        return contact
    person = Contact.objects.create(
        organization=organization,
        first_name=word.title(),
        last_name="Simulator",
        email=email,
        mobile=f"+1500555000{number}",
        language="en_US",
    )
    _device(organization, person, f"simulator-{word}")
    return person


def _contact(organization: Organization, email: str) -> Contact | None:
    """Return the contact that the demo created earlier, or None."""
    return Contact.objects.filter(organization=organization, email=email).order_by("pk").first()


def _device(organization: Organization, person: Contact, token: str) -> None:
    """Create a person's device, or take over the device of a deleted predecessor."""
    device, is_new = Device.objects.get_or_create(
        organization=organization,
        token_digest=token_digest(token),
        defaults={
            "contact_id": str(person.pk),
            "platform": Device.Platform.ANDROID,
            "app": "demo",
            "name": f"{person.first_name}'s phone",
            "token": token,
        },
    )
    owner = ids.parse(device.contact_id)
    if not is_new and owner and not Contact.objects.filter(pk=owner).exists():
        device.contact_id = str(person.pk)
        device.save(update_fields=["contact_id"])


def _template(organization: Organization, channel: str) -> dict[str, str]:
    template, is_new = Template.objects.get_or_create(
        organization=organization,
        name="note",
        language="en_US",
        channel=channel,
        defaults={"category": "TRANSACTIONAL"},
    )
    if is_new:
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


def _other(values: Values) -> dict[str, object]:
    """Return a second organization, which must not see any data of the first."""
    organization = ownership.find("other", values) or _organization("other", "Other")
    user = _integration_user("other-integration", values)
    client_id, client_secret = _application(organization, "Other", user, values)
    email = "nora.quist@people.rme.test"
    person = _contact(organization, email) or Contact.objects.create(
        organization=organization,
        first_name="Nora",
        last_name="Quist",
        email=email,
        mobile="+4522123456",
        zone="Europe/Copenhagen",
    )
    return {
        "org": organization.pk,
        "client_id": client_id,
        "client_secret": client_secret,
        "api_key": _api_key(organization, values),
        "contact_ids": [str(person.pk)],
        "integration_user": user.username,
    }
