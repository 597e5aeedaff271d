"""The form of an organization's platform: where it is, as whom we come, and what is called what.

A secret is typed and never shown: empty keeps what is stored, unless the destination changes.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import orjson
from django import forms
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from unfold import widgets

from rme.core.credentials import REPEATED_VALUE_NEEDED, is_secret, keep_secrets
from rme.crm import mapping, mapping_text, platforms
from rme.crm.connectors import REMOTE
from rme.crm.connectors.base import PlatformError
from rme.crm.connectors.conditions import Description
from rme.crm.models_platform import Platform
from rme.crm.platform_check import error_text
from rme.crm.presets import PRESETS
from rme.tenants.admin.choices import TenantForm

_LONG = frozenset({"private_key", "ca_pem"})
_HELP = {
    "object": "The platform's object. Below are its fields: of several between commas the first "
    "that is not empty counts.",
    "values": "From its values to ours, a line each: status: Open = New. * is any other.",
    "filter": "What every record must have, a line each: IsActive = true.",
    "defaults": "What new records get, a line each: LeadSource = Bot.",
    "phones": "All of them are searched and compared.",
}


_KEPT = "Leave empty to keep what is stored. "
_LABELS = {"ca_pem": "Certificates to trust", "api_key": "API key", "api_version": "API version"}


def label_of(name: str) -> str:
    """Give what a field is called on the page."""
    return _LABELS.get(name, name.replace("find_", "searched for ").replace("_", " ").capitalize())


def setting_name(kind: str, name: str) -> str:
    """Name the form field of a platform's setting."""
    return f"setting_{kind}_{name}"


def mapping_name(kind: str, name: str) -> str:
    """Name the form field of a part of a mapping."""
    return f"map_{kind}_{name}"


def settings_of(kind: str) -> dict[str, FieldInfo]:
    """Give the settings that a platform needs, what few have last."""
    fields = dict(REMOTE[kind].Settings.model_fields)
    fields["ca_pem"] = fields.pop("ca_pem")
    return fields


class _SecretTextarea(widgets.UnfoldAdminTextareaWidget):
    """Take a secret of several lines; never show it."""

    def format_value(self, value: object) -> str:
        return ""


def _setting_field(name: str, info: FieldInfo) -> forms.Field:
    secret = is_secret(info)
    if name in _LONG:
        rows = {"rows": 4}
        plain = widgets.UnfoldAdminTextareaWidget(attrs=rows)
        widget: Any = _SecretTextarea(attrs=rows) if secret else plain
    elif secret:
        widget = widgets.UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
    else:
        widget = widgets.UnfoldAdminTextInputWidget()
    kept = _KEPT if secret else ""
    return forms.CharField(
        label=label_of(name),
        required=False,
        initial="" if info.is_required() or secret else info.default,
        help_text=f"{'Needed. ' if info.is_required() else ''}{kept}{info.description or ''}",
        widget=widget,
    )


def mapping_names(kind: str) -> tuple[str, ...]:
    """Give what the mapping of a kind says, in the order of the form."""
    return ("object", *mapping.KINDS[kind], *mapping_text.PARTS)


def _mapping_field(kind: str, name: str) -> forms.Field:
    lines = name in mapping_text.PARTS
    widget = (
        widgets.UnfoldAdminTextareaWidget(attrs={"rows": 4})
        if lines
        else widgets.UnfoldAdminTextInputWidget()
    )
    needed = "Needed. " if name in mapping.NEEDED[kind] else ""
    return forms.CharField(
        label=label_of(name),
        required=False,
        help_text=needed + _HELP.get(name, ""),
        widget=widget,
    )


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
    """A platform with its settings and its mapping, checked against its own description.

    The description is not asked for here, where a transaction may be open: whoever validates the
    form asks for what `to_ask` then names, and validates it again with the `answer`.
    """

    answer: ClassVar[Description | PlatformError | None] = None
    to_ask: platforms.PlatformRecord | None = None

    kind = forms.ChoiceField(
        label="Platform",
        choices=lambda: [
            (platforms.EMBEDDED, "Embedded: records are kept here"),
            *((kind, connector.label) for kind, connector in REMOTE.items()),
        ],
        widget=widgets.UnfoldAdminSelectWidget(),
    )
    preset = forms.ChoiceField(
        label="Start from a preset",
        required=False,
        choices=[("", "– the mapping below –"), *((n, p[1]) for n, p in PRESETS.items())],
        help_text="Takes the place of the mapping below.",
        widget=widgets.UnfoldAdminSelectWidget(),
    )
    unchecked = forms.BooleanField(
        label="Save without asking the platform",
        required=False,
        help_text="For a platform that cannot be reached yet: names are not compared with its own.",
        widget=widgets.UnfoldBooleanSwitchWidget(),
    )

    class Meta:
        model = Platform
        fields = ("organization", "kind")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self._there():
            for name in SECRET_FIELDS & set(self.fields):
                field = self.fields[name]
                field.help_text = str(field.help_text).replace(_KEPT, "")
            return
        for name, value in stored_settings(self.instance).items():
            full = setting_name(self.instance.kind, name)
            if full in self.fields and full not in SECRET_FIELDS:
                self.initial[full] = value
        raw = self.instance.mapping if isinstance(self.instance.mapping, dict) else {}
        for kind in set(raw) & set(mapping.KINDS):
            for name, text in mapping_text.shown(raw[kind]).items():
                self.initial[mapping_name(kind, name)] = text

    def _there(self) -> bool:
        return not self.instance._state.adding

    def clean(self) -> dict[str, Any]:
        """Check settings and mapping, each problem beside its field."""
        given = super().clean()
        kind, organization = given.get("kind", ""), self.own_organization()
        if kind not in REMOTE or organization is None:
            self.instance.credentials, self.instance.mapping = "", {}
            return given
        settings = self._settings(kind, given)
        raw = self._mapping(kind, given)
        self.instance.credentials = orjson.dumps(settings).decode()
        self.instance.mapping = raw
        if not self.errors and not given.get("unchecked"):
            self.to_ask = platforms.record(
                organization.pk, kind, self.instance.credentials, raw, organization.region
            )
            self._compare(self.to_ask)
        return given

    def _settings(self, kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what to store: what was typed, and the secrets that were not."""
        fields = settings_of(kind)
        stored = stored_settings(self.instance) if self.instance.kind == kind else {}
        typed = {name: given.get(setting_name(kind, name), "") for name in fields}
        settings, missing = keep_secrets(fields, stored, typed)
        for name in missing:
            self.add_error(setting_name(kind, name), REPEATED_VALUE_NEEDED)
        if missing:
            return settings
        try:
            REMOTE[kind].Settings.model_validate(settings)
        except ValidationError as error:
            # without the input: it may be the secret
            for problem in error.errors(include_input=False, include_url=False):
                name = setting_name(kind, str((*problem["loc"], "")[0]))
                text = problem["msg"].removeprefix("Value error, ")
                self.add_error(name if name in self.fields else None, text)
        return settings

    def _mapping(self, kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
        if preset := given.get("preset"):
            if PRESETS[preset][0] != kind:
                self.add_error("preset", "This is a preset of another platform.")
            return PRESETS[preset][2]
        raw: dict[str, Any] = {}
        problems: list[mapping.Problem] = []
        for each in mapping.KINDS:
            texts = {name: given.get(mapping_name(each, name), "") for name in mapping_names(each)}
            try:
                if texts["object"].strip():
                    raw[each] = mapping_text.read(each, texts)
            except mapping.MappingInvalid as error:
                problems += error.problems
        try:
            if not problems:
                mapping.parse(raw)
        except mapping.MappingInvalid as error:
            problems += error.problems
        self._tell(problems)
        return raw

    def _compare(self, record: platforms.PlatformRecord) -> None:
        match self.answer:
            case PlatformError() as error:
                self.add_error(setting_name(record.kind, "address"), error_text(error))
            case Mapping() as described:
                self._tell(mapping.problems_with(record.mappings, described))

    def _tell(self, problems: Iterable[mapping.Problem]) -> None:
        for problem in problems:
            name = mapping_name(problem.kind, problem.where)
            here = name in self.fields
            message = problem.message if here else f"{problem.where}: {problem.message}"
            self.add_error(name if here else None, message)


def stored_settings(row: Platform) -> dict[str, Any]:
    """Give what is stored, secrets included; nothing where it is broken."""
    try:
        stored = orjson.loads(row.credentials or "{}")
    except orjson.JSONDecodeError:
        return {}  # the form is where it is mended
    return stored if isinstance(stored, dict) else {}


PlatformForm: Any = type("PlatformForm", (_PlatformForm,), _fields())
