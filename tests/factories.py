"""Rows that tests start from. Every maker gives the saved row."""

from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import Group

from messaging.content import templates
from messaging.models import SenderDomain, Template, TemplateVersion
from push.models import Device, token_digest
from rme.crm.models import Contact
from rme.tenants import organizations
from rme.tenants.models import INTEGRATION_GROUP, Application, Organization, User
from rme.tenants.oauth.authentication import Caller


def organization(identifier: str = "acme", **fields: Any) -> Organization:
    """Make an organization with a verified sender domain, set to the simulator."""
    given = {"name": identifier.title(), "simulator": True, **fields}
    row = Organization.objects.create(id=identifier, **given)
    SenderDomain.objects.create(
        organization=row,
        domain=f"{identifier}.example",
        verified_at=datetime.now(UTC),
        is_default=True,
        name=identifier.title(),
    )
    return row


def integration_user(name: str = "integration") -> User:
    """Make a user that applications may run as."""
    group, _ = Group.objects.get_or_create(name=INTEGRATION_GROUP)
    user = User.objects.filter(username=name).first()
    if user is None:
        user = User.objects.create(username=name)
        User.groups.through.objects.create(user=user, group=group)
    return user


def caller(row: Organization, *, test: bool = False) -> Caller:
    """Make what the authentication gives for an organization's program."""
    return Caller(organization=organizations.get(row.pk), application_id=1, user_id=1, test=test)


def contact(row: Organization, **fields: Any) -> Contact:
    """Make a contact with an email address and a mobile number."""
    defaults = {
        "first_name": "Ada",
        "last_name": "Lovelace",
        "email": "ada@simulator.rme.test",
        "mobile": "+12125550100",
    }
    return Contact.objects.create(organization=row, **{**defaults, **fields})


def contacts(row: Organization, count: int) -> list[Contact]:
    """Make many contacts, each with an address of its own."""
    return Contact.objects.bulk_create(
        Contact(
            organization=row,
            first_name=f"First{i}",
            last_name=f"Last{i}",
            email=f"person{i}@simulator.rme.test",
            mobile=f"+1212555{i:04d}",
        )
        for i in range(count)
    )


def device(row: Organization, person: Contact, token: str = "simulator-delivered") -> Device:
    """Make an active device of a contact."""
    return Device.objects.create(
        organization=row,
        contact_id=str(person.pk),
        platform="ANDROID",
        token=token,
        token_digest=token_digest(token),
    )


TEXTS = {
    "EMAIL": {"subject": "Hello {{ contact.first_name }}", "text": "Note: {{ note }}"},
    "SMS": {"text": "Note: {{ note }}"},
    "PUSH": {"title": "Hello", "body": "Note: {{ note }}"},
}


def template(
    row: Organization, channel: str = "EMAIL", name: str = "welcome", **fields: Any
) -> TemplateVersion:
    """Make a template with an active version."""
    category = fields.pop("category", "TRANSACTIONAL")
    language = fields.pop("language", "en_US")
    made = Template.objects.create(
        organization=row, name=name, language=language, channel=channel, category=category
    )
    version = templates.add_draft(made, {**TEXTS[channel], **fields})
    templates.activate(version)
    return version


def welcome(row: Organization) -> None:
    """Make the template `welcome` on all channels, as activating it leaves it, by two statements.

    Most tests begin with it, and few are about how it came there.
    """
    made = Template.objects.bulk_create(
        Template(
            organization=row,
            name="welcome",
            language="en_US",
            channel=channel,
            category="TRANSACTIONAL",
        )
        for channel in TEXTS
    )
    TemplateVersion.objects.bulk_create(
        TemplateVersion(
            template=each,
            version=1,
            state=TemplateVersion.State.ACTIVE,
            activated_at=datetime.now(UTC),
            **TEXTS[each.channel],
        )
        for each in made
    )


def application(row: Organization, user: User, **fields: Any) -> Application:
    """Make an OAuth application (its secret is not known: ask `applications` for one)."""
    return Application.objects.create(organization=row, user=user, name="app", **fields)
