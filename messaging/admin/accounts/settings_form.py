"""The form of a provider account, made from the schema of its provider's settings.

Each setting of each provider is a field; the page shows those of the chosen kind. A secret can be
entered and is never shown: an empty field keeps the stored one, unless the destination changes. A
setting with `json_schema_extra={"multiline": True}` gets a field of several lines.
"""

from enum import Enum
from typing import Any, ClassVar, Literal, get_args, get_origin

import orjson
from django import forms
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from unfold import widgets

from messaging import providers
from messaging.models import ProviderAccount
from rme.core.credentials import REPEATED_VALUE_NEEDED, is_secret, keep_secrets, types_of
from rme.tenants.admin.choices import TenantForm


# The theme has no types.
class SecretTextarea(widgets.UnfoldAdminTextareaWidget):
    """A field for a secret of several lines, which is never shown."""

    def format_value(self, value: object) -> str:
        return ""


def setting_name(kind: str, name: str) -> str:
    """Return the name of the form field of a provider's setting."""
    return f"setting_{kind}_{name}"


def _choices(info: FieldInfo) -> list[tuple[str, str]]:
    for kind in types_of(info.annotation):
        if get_origin(kind) is Literal:
            return [(str(value), str(value)) for value in get_args(kind)]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [(str(member.value), str(member.value)) for member in kind]
    return []


def _multiline(name: str, info: FieldInfo) -> bool:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    return bool(extra.get("multiline")) or name.endswith(("_pem", "_json", "private_key"))


def _widget(name: str, info: FieldInfo) -> forms.Widget:
    if is_secret(info):
        password = widgets.UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
        return SecretTextarea() if _multiline(name, info) else password
    return (
        widgets.UnfoldAdminTextareaWidget()
        if _multiline(name, info)
        else widgets.UnfoldAdminTextInputWidget()
    )


def _default(info: FieldInfo) -> object:
    if is_secret(info) or info.is_required():
        return ""
    return _shown(info.get_default(call_default_factory=True))


def _shown(value: object) -> object:
    """Return a value as the form shows it."""
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(each) for each in value)
    if isinstance(value, Enum):
        return value.value
    return "" if value is None else value


def _help(info: FieldInfo) -> str:
    required = "Required. " if info.is_required() else ""
    secret = "Leave empty to keep the stored one. " if is_secret(info) else ""
    return f"{required}{secret}{info.description or ''}"


def _field(name: str, info: FieldInfo) -> forms.Field:
    common = {"label": name.replace("_", " "), "required": False, "help_text": _help(info)}
    if bool in types_of(info.annotation):
        toggle = widgets.UnfoldBooleanSwitchWidget()
        return forms.BooleanField(**common, initial=_default(info), widget=toggle)
    if choices := _choices(info):
        select = widgets.UnfoldAdminSelectWidget()
        return forms.ChoiceField(
            **common, choices=choices, initial=str(_default(info)), widget=select
        )
    # All other types are entered as text, which the provider's schema parses and checks.
    return forms.CharField(**common, initial=_default(info), widget=_widget(name, info))


def _fields() -> dict[str, forms.Field]:
    return {
        setting_name(kind, name): _field(name, info)
        for kind, provider in providers.REGISTRY.items()
        for name, info in provider.Settings.model_fields.items()
    }


SECRET_FIELDS = frozenset(
    setting_name(kind, name)
    for kind, provider in providers.REGISTRY.items()
    for name, info in provider.Settings.model_fields.items()
    if is_secret(info)
)


class _AccountForm(TenantForm):
    """An account with its provider's settings, which the provider's schema checks."""

    class Meta:
        model = ProviderAccount
        fields = (
            "organization",
            "name",
            "kind",
            "channel",
            "priority",
            "weight",
            "match",
            "rate",
            "state",
        )
        widgets: ClassVar[dict[str, Any]] = {"match": widgets.UnfoldAdminTextInputWidget()}

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        for name, value in self._stored().items():
            full = setting_name(self.instance.kind, name)
            if full in self.fields and full not in SECRET_FIELDS:
                self.initial[full] = _shown(value)

    def _stored(self) -> dict[str, object]:
        try:
            stored = orjson.loads(self.instance.credentials) if self.instance.pk else {}
        except orjson.JSONDecodeError:
            return {}  # broken settings can be replaced in the form
        return stored if isinstance(stored, dict) else {}

    def clean(self) -> dict[str, Any]:
        """Check the settings by the provider's schema; each error is shown at its field."""
        given = super().clean()
        # kind and channel are fields of new accounts only
        provider = providers.REGISTRY.get(given.get("kind") or self.instance.kind)
        if provider is None:
            return given
        if given.get("channel") and given["channel"] not in provider.channels:
            self.add_error("channel", f"{provider.label} does not serve this channel.")
        settings, missing = self._settings(provider.kind, given)
        for name in missing:
            self.add_error(setting_name(provider.kind, name), REPEATED_VALUE_NEEDED)
        if missing:
            return given
        try:
            provider.Settings.model_validate(settings)
        except ValidationError as error:
            # without the input, which may be the secret
            for problem in error.errors(include_input=False, include_url=False):
                name = setting_name(provider.kind, str((*problem["loc"], "")[0]))
                text = problem["msg"].removeprefix("Value error, ")
                self.add_error(name if name in self.fields else None, text)
        self.instance.credentials = orjson.dumps(settings).decode()
        return given

    def _settings(self, kind: str, given: dict[str, object]) -> tuple[dict[str, object], list[str]]:
        """Return the settings to store, and the names of secrets that must be entered again."""
        fields = providers.REGISTRY[kind].Settings.model_fields
        stored = self._stored() if self.instance.kind == kind else {}
        typed = {name: given.get(setting_name(kind, name), "") for name in fields}
        settings, missing = keep_secrets(fields, stored, typed)
        return {name: _converted(fields[name], value) for name, value in settings.items()}, missing


def _converted(info: FieldInfo, value: object) -> object:
    """Return a value with the text of a list split into items."""
    kinds = {get_origin(kind) or kind for kind in types_of(info.annotation)}
    if isinstance(value, str) and kinds & {list, tuple, set, frozenset}:
        return [part.strip() for part in value.replace("\n", ",").split(",") if part.strip()]
    return value


AccountForm: Any = type("AccountForm", (_AccountForm,), _fields())
MAIN = _AccountForm.Meta.fields
