"""The form of an organization's platform: address, credentials and mapping.

A secret is never shown. An empty field keeps the stored secret, unless the destination changes.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import orjson
from django import forms
from django.utils.functional import lazy
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from unfold import widgets

from rme.core.provider.credentials import (
    REPEATED_VALUE_NEEDED,
    is_secret,
    keep_secrets,
    setting_problems,
)
from rme.crm import mapping, mapping_text, platforms
from rme.crm.connectors import REMOTE
from rme.crm.connectors.base import PlatformError
from rme.crm.connectors.conditions import Description
from rme.crm.models import Platform
from rme.crm.platform_check import error_text
from rme.crm.presets import PRESETS
from rme.tenants.admin.choices import TenantForm
from rme.tenants.admin.form_fields import SecretTextarea

_LONG = frozenset({"private_key", "ca_pem"})
_HELP = {
    "object": _(
        "The platform's object. Below are its fields: of several, separated by commas, the first "
        "one with a value counts."
    ),
    "values": _(
        "The platform's values and ours, one per line: status: Open = New. * is any other."
    ),
    "filter": _("Conditions for every record, one per line: IsActive = true."),
    "defaults": _("Values for new records, one per line: LeadSource = Bot."),
    "phones": _("rme searches and compares all of them."),
}


_NEEDED = _("Required.")
_KEEP_HINT = _("Leave empty to keep the stored value.")
_LABELS = {
    "ca_pem": _("Certificates to trust"),
    "api_key": _("API key"),
    "api_version": _("API version"),
}


def _label(name: str) -> str:
    if name in _LABELS:
        return str(_LABELS[name])
    words = gettext(name.removeprefix("find_").replace("_", " "))
    if name.startswith("find_"):
        return gettext("Searched for %(name)s") % {"name": words}
    return str(capfirst(words))


label_of = lazy(_label, str)
"""Returns the label of a field."""


def _join(*hints: object) -> str:
    return " ".join(str(each) for each in hints if each)


_hints = lazy(_join, str)


def setting_name(kind: str, name: str) -> str:
    """Return the name of the form field for a platform's setting."""
    return f"setting_{kind}_{name}"


def mapping_name(kind: str, name: str) -> str:
    """Return the name of the form field for a field or part of a mapping."""
    return f"map_{kind}_{name}"


def settings_of(kind: str) -> dict[str, FieldInfo]:
    """Return a platform's settings; `ca_pem`, which few need, is last."""
    fields = dict(REMOTE[kind].Settings.model_fields)
    fields["ca_pem"] = fields.pop("ca_pem")
    return fields


def _setting_field(name: str, info: FieldInfo) -> forms.Field:
    secret = is_secret(info)
    if name in _LONG:
        rows = {"rows": 4}
        plain = widgets.UnfoldAdminTextareaWidget(attrs=rows)
        widget: Any = SecretTextarea(attrs=rows) if secret else plain
    elif secret:
        widget = widgets.UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
    else:
        widget = widgets.UnfoldAdminTextInputWidget()
    needed = _NEEDED if info.is_required() else ""
    about = gettext_lazy(info.description) if info.description else ""
    return forms.CharField(
        label=label_of(name),
        required=False,
        initial="" if info.is_required() or secret else info.default,
        help_text=_hints(needed, _KEEP_HINT if secret else "", about),
        widget=widget,
    )


def mapping_names(kind: str) -> tuple[str, ...]:
    """Return the fields and parts of a kind's mapping, in the order of the form."""
    return ("object", *mapping.KINDS[kind], *mapping_text.PARTS)


def _mapping_field(kind: str, name: str) -> forms.Field:
    multiline = name in mapping_text.PARTS
    widget = (
        widgets.UnfoldAdminTextareaWidget(attrs={"rows": 4})
        if multiline
        else widgets.UnfoldAdminTextInputWidget()
    )
    needed = _NEEDED if name in mapping.NEEDED[kind] else ""
    help_text = _hints(needed, _HELP.get(name, ""))
    return forms.CharField(label=label_of(name), required=False, help_text=help_text, widget=widget)


def _fields() -> dict[str, forms.Field]:
    settings = {
        setting_name(kind, name): _setting_field(name, info)
        for kind in REMOTE
        for name, info in settings_of(kind).items()
    }
    mapped = {
        mapping_name(kind, name): _mapping_field(kind, name)
        for kind in mapping.KINDS
        for name in mapping_names(kind)
    }
    return {**settings, **mapped}


SECRET_FIELDS = frozenset(
    setting_name(kind, name)
    for kind in REMOTE
    for name, info in settings_of(kind).items()
    if is_secret(info)
)


class _PlatformForm(TenantForm):
    """A platform's settings and mapping, checked against the platform's own description.

    The form does not call the platform, since a transaction may be open. The view validates the
    form, fetches the description of `to_describe`, and validates again with it as `description`.
    """

    description: ClassVar[Description | PlatformError | None] = None
    to_describe: platforms.PlatformRecord | None = None

    kind = forms.ChoiceField(
        label=_("Platform"),
        choices=lambda: [
            (platforms.EMBEDDED, gettext("Embedded: records are kept here")),
            *((kind, connector.label) for kind, connector in REMOTE.items()),
        ],
        widget=widgets.UnfoldAdminSelectWidget(),
    )
    preset = forms.ChoiceField(
        label=_("Start from a preset"),
        required=False,
        choices=[
            ("", _("– the mapping below –")),
            *((name, preset.label) for name, preset in PRESETS.items()),
        ],
        help_text=_("Replaces the mapping below."),
        widget=widgets.UnfoldAdminSelectWidget(),
    )
    unchecked = forms.BooleanField(
        label=_("Save without asking the platform"),
        required=False,
        help_text=_("For a platform that can't be reached yet: rme doesn't check the names."),
        widget=widgets.UnfoldBooleanSwitchWidget(),
    )

    class Meta:
        model = Platform
        fields = ("organization", "kind")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            for name in SECRET_FIELDS & set(self.fields):
                field = self.fields[name]
                field.help_text = str(field.help_text).replace(str(_KEEP_HINT), "")
            return
        for name, value in stored_settings(self.instance).items():
            full = setting_name(self.instance.kind, name)
            if full in self.fields and full not in SECRET_FIELDS:
                self.initial[full] = value
        raw = self.instance.mapping if isinstance(self.instance.mapping, dict) else {}
        for kind in set(raw) & set(mapping.KINDS):
            for name, text in mapping_text.as_text(raw[kind]).items():
                self.initial[mapping_name(kind, name)] = text

    def clean(self) -> dict[str, Any]:
        """Check settings and mapping; each error is shown at its field."""
        cleaned = super().clean()
        kind, organization = cleaned.get("kind", ""), self.own_organization()
        if kind not in REMOTE or organization is None:
            self.instance.credentials, self.instance.mapping = "", {}
            return cleaned
        settings = self._settings(kind, cleaned)
        raw = self._mapping(kind, cleaned)
        self.instance.credentials = orjson.dumps(settings).decode()
        self.instance.mapping = raw
        if not self.errors and not cleaned.get("unchecked"):
            self.to_describe = platforms.record(
                organization.pk, kind, self.instance.credentials, raw, organization.region
            )
            self._compare(self.to_describe)
        return cleaned

    def _settings(self, kind: str, cleaned: Mapping[str, object]) -> dict[str, object]:
        """Return the settings to store: typed values, and stored secrets for fields left empty."""
        fields = settings_of(kind)
        stored_values = stored_settings(self.instance) if self.instance.kind == kind else {}
        typed = {name: cleaned.get(setting_name(kind, name), "") for name in fields}
        settings, missing_names = keep_secrets(fields, stored_values, typed)
        for name in missing_names:
            self.add_error(setting_name(kind, name), REPEATED_VALUE_NEEDED)
        if missing_names:
            return settings
        try:
            REMOTE[kind].Settings.model_validate(settings)
        except ValidationError as error:
            for setting, text in setting_problems(error):
                name = setting_name(kind, setting)
                self.add_error(name if name in self.fields else None, text)
        return settings

    def _mapping(self, kind: str, cleaned: Mapping[str, Any]) -> dict[str, object]:
        if preset := cleaned.get("preset"):
            if PRESETS[preset].kind != kind:
                self.add_error("preset", gettext("This is a preset of another platform."))
            return PRESETS[preset].mapping
        raw: dict[str, Any] = {}
        problems: list[mapping.Problem] = []
        for record_kind in mapping.KINDS:
            texts = {
                name: cleaned.get(mapping_name(record_kind, name), "")
                for name in mapping_names(record_kind)
            }
            try:
                if texts["object"].strip():
                    raw[record_kind] = mapping_text.read(record_kind, texts)
            except mapping.MappingInvalid as error:
                problems += error.problems
        try:
            if not problems:
                mapping.parse(raw)
        except mapping.MappingInvalid as error:
            problems += error.problems
        self._add_problems(problems)
        return raw

    def _compare(self, record: platforms.PlatformRecord) -> None:
        match self.description:
            case PlatformError() as error:
                self.add_error(setting_name(record.kind, "address"), error_text(error))
            case Mapping() as described:
                self._add_problems(mapping.problems_with(record.mappings, described))

    def _add_problems(self, problems: Iterable[mapping.Problem]) -> None:
        for problem in problems:
            name = mapping_name(problem.kind, problem.place)
            has_field = name in self.fields
            message = problem.message if has_field else f"{problem.place}: {problem.message}"
            self.add_error(name if has_field else None, message)


def stored_settings(row: Platform) -> dict[str, object]:
    """Return the stored settings, secrets included; an empty dict if they cannot be read."""
    try:
        settings = orjson.loads(row.credentials or "{}")
    except ValueError:  # can't be decrypted, or is no JSON
        return {}  # the form is where people repair them
    return settings if isinstance(settings, dict) else {}


PlatformForm: Any = type("PlatformForm", (_PlatformForm,), _fields())
