"""Preview of a template version for a contact, rendered as a send would render it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django import forms
from unfold.widgets import (
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from messaging.content import compose, rendering, samples, templates
from messaging.models import TemplateVersion
from messaging.policy import organization_policy
from rme.core import addresses
from rme.crm import connectors, lookups
from rme.crm.connectors.base import Connector, Deadline
from rme.crm.connectors.records import ContactRecord
from rme.tenants import organizations
from rme.tenants.admin.json_fields import JsonField

LOOKUP_SECONDS = 5.0


def variables_of(version: TemplateVersion) -> dict[str, Any]:
    """Return sample values of the variables that a version's schema or its texts name."""
    named = samples.variables(version.variables)
    missing = preview(version, samples.PERSON, named).missing
    return {**{name: f"[{name}]" for name in missing if name.isidentifier()}, **named}


def _field_of(name: str, value: object) -> forms.Field:
    """Return the form field of a plain variable, which begins with its sample value."""
    if isinstance(value, bool):
        return forms.BooleanField(
            label=name, required=False, initial=value, widget=UnfoldBooleanSwitchWidget
        )
    kinds = {int: forms.IntegerField, float: forms.FloatField}
    kind = kinds.get(type(value), forms.CharField)
    return kind(label=name, required=False, initial=value, widget=UnfoldAdminTextInputWidget)


class PreviewForm(forms.Form):
    """The contact and the variables of a preview."""

    contact = forms.CharField(
        required=False,
        max_length=254,
        help_text="A contact's email address or id; empty: a sample person.",
        widget=UnfoldAdminTextInputWidget,
    )
    variables = JsonField(
        required=False,
        widget=UnfoldAdminTextareaWidget,
        label="Further variables",
        help_text="Only for lists and objects, as JSON.",
    )

    def __init__(self, version: TemplateVersion, *args: object) -> None:
        super().__init__(*args)
        self.organization_id: str = version.template.organization_id
        self.person = samples.PERSON
        self.plain: dict[str, str] = {}
        """The variables that have a field of their own: their names by those of the fields."""
        self._add_plain(version)

    def _add_plain(self, version: TemplateVersion) -> None:
        """Add a field for each plain variable; lists and objects are left to `variables`."""
        rest = {}
        for name, value in variables_of(version).items():
            if isinstance(value, list | dict):
                rest[name] = value
                continue
            field_name = f"variable_{name}"
            self.plain[field_name] = name
            self.fields[field_name] = _field_of(name, value)
        self.order_fields(["contact", *self.plain, "variables"])
        self.fields["variables"].initial = rest or None

    def clean_contact(self) -> str:
        """Find the contact in the organization's own platform."""
        contact_id: str = self.cleaned_data["contact"].strip()
        if contact_id:
            platform = connectors.REGISTRY["embedded"](self.organization_id)
            if "@" in contact_id:
                return self._by_email(platform, contact_id)
            found = platform.get_contacts([contact_id]).get(contact_id)
            if found is None:
                raise forms.ValidationError("There is no such contact.")
            self.person = found
        return contact_id

    def _by_email(self, platform: Connector, typed: str) -> str:
        """Find the contact with an email address, which no other one may have."""
        deadline = Deadline.after(LOOKUP_SECONDS)
        email = addresses.email(typed) or ""
        found = lookups.contacts_by_email(platform, email, limit=2, deadline=deadline)
        if len(found) != 1:
            problem = "Several contacts have" if found else "No contact has"
            raise forms.ValidationError(f"{problem} this email address.")
        self.person = found[0]
        return found[0].id

    def clean_variables(self) -> dict[str, object]:
        """Require an object."""
        given = self.cleaned_data["variables"] or {}
        if not isinstance(given, dict):
            raise forms.ValidationError('An object, like {"note": "hello"}.')
        own = {name: self.cleaned_data.get(field) for field, name in self.plain.items()}
        return {**{name: value for name, value in own.items() if value not in (None, "")}, **given}


class SendForm(PreviewForm):
    """The contact and the variables of a message that is sent by the active version."""

    def __init__(self, version: TemplateVersion, *args: object) -> None:
        super().__init__(version, *args)
        self.fields["contact"].required = True
        self.fields["contact"].help_text = "The email address or id of a contact, such as yourself."


@dataclass(frozen=True, slots=True)
class Preview:
    """A rendered preview: lines of name and text, HTML for a frame, or a problem."""

    lines: list[tuple[str, str]]
    html: str = ""
    problem: str = ""
    missing: Sequence[str] = ()
    """The variables without a value."""


def preview(
    version: TemplateVersion, person: ContactRecord, variables: dict[str, object]
) -> Preview:
    """Return the preview of a version for a contact."""
    try:
        template = templates.compile_version(version)
        return _rendered(version, template.compiled, _context(template, version, person, variables))
    except (rendering.TemplateSyntax, rendering.RenderLimit, rendering.RenderFailed) as error:
        return Preview([], problem=str(error))


def _context(
    template: templates.ActiveTemplate,
    version: TemplateVersion,
    person: ContactRecord,
    variables: dict[str, object],
) -> dict[str, object]:
    organization = organizations.get(version.template.organization_id)
    policy = organization_policy.of(organization.id)
    domain = policy.default_domain
    sender = {"name": (domain and domain.name) or organization.name}
    request = compose.RenderRequest(
        organization=organization,
        delivery_id="",
        message_id="",
        contact=person,
        address="",
        body={"variables": variables, "sender": sender},
        template=template,
        policy=policy,
    )
    return dict(request.context)


def _rendered(version: TemplateVersion, compiled: object, context: dict[str, object]) -> Preview:
    match version.template.channel:
        case "SMS":
            sms = rendering.preview_sms(compiled, context)
            size = sms.size
            shown = f"{size.encoding}, {size.characters} characters, {size.segments} segment(s)"
            lines = [("Text", sms.text), ("Size", shown), _missing(sms.missing)]
            return Preview(lines, missing=sms.missing)
        case "PUSH":
            push = rendering.render_push(compiled, context)
            data = orjson.dumps(dict(push.data)).decode()
            shown = [("Title", push.title), ("Body", push.body), ("Data", data)]
            rest = [("Badge", push.badge), ("Image", push.image), ("Link", push.link)]
            more = [(name, str(value)) for name, value in rest if value not in (None, "")]
            return Preview([*shown, *more, _missing(push.missing)], missing=push.missing)
    mail = rendering.render_email(compiled, context)
    lines = [("Subject", mail.subject), ("Text", mail.text), _missing(mail.missing)]
    return Preview(lines, html=mail.html, missing=mail.missing)


def _missing(names: Sequence[str]) -> tuple[str, str]:
    return "Variables without a value", ", ".join(names) or "none"
