"""The form of a message that is sent to a contact by the active version of a template."""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from messaging.content import previews, samples
from messaging.models import TemplateVersion
from rme.core import addresses
from rme.crm import connectors, lookups
from rme.crm.connectors.base import Connector, Deadline
from rme.tenants import organizations
from rme.tenants.admin.form_fields import JsonField

LOOKUP_SECONDS = 5.0


def variables_of(version: TemplateVersion) -> dict[str, Any]:
    """Return sample values of the variables that a version's schema or its texts name."""
    values = samples.variables(version.variables)
    organization = organizations.get(version.template.organization_id)
    preview = previews.preview_texts(organization, version, samples.PERSON, values)
    missing_names = preview.rendered.missing if preview.rendered else ()
    return {**{name: f"[{name}]" for name in missing_names if name.isidentifier()}, **values}


def _field_of(name: str, value: object) -> forms.Field:
    """Return the form field of a plain variable, which begins with its sample value."""
    if isinstance(value, bool):
        return forms.BooleanField(
            label=name, required=False, initial=value, widget=UnfoldBooleanSwitchWidget
        )
    kinds = {int: forms.IntegerField, float: forms.FloatField}
    kind = kinds.get(type(value), forms.CharField)
    return kind(label=name, required=False, initial=value, widget=UnfoldAdminTextInputWidget)


class SendForm(forms.Form):
    """The contact and the variables of a message that is sent by the active version."""

    contact = forms.CharField(
        max_length=254,
        help_text="The email address or id of a contact, such as yourself.",
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
        self.plain: dict[str, str] = {}
        """The variables that have a field of their own: their names by those of the fields."""
        self._add_plain(version)

    def _add_plain(self, version: TemplateVersion) -> None:
        """Add a field for each plain variable; lists and objects are left to `variables`."""
        structured = {}
        for name, value in variables_of(version).items():
            if isinstance(value, list | dict):
                structured[name] = value
                continue
            field_name = f"variable_{name}"
            self.plain[field_name] = name
            self.fields[field_name] = _field_of(name, value)
        self.order_fields(["contact", *self.plain, "variables"])
        self.fields["variables"].initial = structured or None

    def clean_contact(self) -> str:
        """Find the contact in the organization's own platform."""
        contact_id: str = self.cleaned_data["contact"].strip()
        platform = connectors.REGISTRY["embedded"](self.organization_id)
        if "@" in contact_id:
            return self._by_email(platform, contact_id)
        if contact_id not in platform.get_contacts([contact_id]):
            raise forms.ValidationError("There is no such contact.")
        return contact_id

    def _by_email(self, platform: Connector, typed: str) -> str:
        """Find the contact with an email address, which no other one may have."""
        deadline = Deadline.after(LOOKUP_SECONDS)
        email = addresses.email(typed) or ""
        contacts = lookups.contacts_by_email(platform, email, limit=2, deadline=deadline)
        if len(contacts) != 1:
            problem = "Several contacts have" if contacts else "No contact has"
            raise forms.ValidationError(f"{problem} this email address.")
        return contacts[0].id

    def clean_variables(self) -> dict[str, object]:
        """Require an object."""
        typed_object = self.cleaned_data["variables"] or {}
        if not isinstance(typed_object, dict):
            raise forms.ValidationError('An object, like {"note": "hello"}.')
        plain_values = {name: self.cleaned_data.get(field) for field, name in self.plain.items()}
        return {
            **{name: value for name, value in plain_values.items() if value not in (None, "")},
            **typed_object,
        }
