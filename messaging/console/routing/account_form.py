"""The forms of provider accounts, one for each kind, made from the schema of its settings.

Each setting of the kind is a field. A secret can be entered and is never shown: an empty field
keeps the stored one, unless the destination changes. A setting with
`json_schema_extra={"multiline": True}` gets a field of several lines.
"""

from enum import Enum
from functools import cache
from typing import Any, ClassVar, Literal, get_args, get_origin

import orjson
from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from unfold import widgets

from messaging import providers
from messaging.console import wording
from messaging.console.routing import provider_kinds
from messaging.models import ProviderAccount
from messaging.providers.anymail import OWN
from messaging.providers.anymail.services import NEVER, SERVICES, Service
from rme.core.provider.credentials import (
    REPEATED_VALUE_NEEDED,
    is_destination,
    is_secret,
    keep_secrets,
    setting_problems,
    types_of,
)
from rme.tenants.admin.form_fields import SecretTextarea


def setting_name(kind: str, name: str) -> str:
    """Return the name of the form field of a provider's setting."""
    return f"setting_{kind}_{name}"


def _choices(info: FieldInfo) -> list[tuple[str, str]]:
    values: list[str] = []
    for kind in types_of(info.annotation):
        if get_origin(kind) is Literal:
            values = [str(value) for value in get_args(kind)]
        elif isinstance(kind, type) and issubclass(kind, Enum):
            values = [str(member.value) for member in kind]
    return [(value, provider_kinds.CHOICES.get(value, value)) for value in values]


def _multiline(name: str, info: FieldInfo) -> bool:
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    return bool(extra.get("multiline")) or name.endswith(("_pem", "_json", "private_key"))


def _widget(name: str, info: FieldInfo) -> forms.Widget:
    if is_secret(info):
        password = widgets.UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})
        return SecretTextarea() if _multiline(name, info) else password
    widget: forms.Widget = (
        widgets.UnfoldAdminTextareaWidget()
        if _multiline(name, info)
        else widgets.UnfoldAdminTextInputWidget()
    )
    return widget


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


def _help(info: FieldInfo) -> Any:
    """Return what helps with a setting, lazily: the form of a kind is made once."""
    texts = [gettext_lazy("Required.")] if info.is_required() else []
    texts += [gettext_lazy(info.description)] if info.description else []
    return format_lazy(" ".join("{}" for _text in texts), *texts)


def _field(kind: str, name: str, info: FieldInfo) -> forms.Field:
    common: dict[str, Any] = {
        "label": provider_kinds.setting_label(kind, name),
        "required": False,
        "help_text": _help(info),
    }
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


SECRET_FIELDS = frozenset(
    setting_name(kind, name)
    for kind, provider in providers.REGISTRY.items()
    for name, info in provider.Settings.model_fields.items()
    if is_secret(info)
)


class AccountForm(forms.ModelForm):
    """An account, new or stored, with its provider's settings, which the provider's schema checks.

    A stored account keeps its channel.
    """

    kind: ClassVar[str]

    class Meta:
        model = ProviderAccount
        fields = ("name", "channel", "match", "rate")
        labels: ClassVar[dict[str, Any]] = {
            "match": gettext_lazy("Recipients"),
            "rate": gettext_lazy("Sends per second"),
        }
        help_texts: ClassVar[dict[str, Any]] = {
            "match": gettext_lazy(
                "SMS: country prefixes, such as +41. Email: recipient domains. Leave empty for "
                "all recipients."
            ),
            "rate": gettext_lazy("Leave empty for no limit."),
        }
        widgets: ClassVar[dict[str, Any]] = {
            "name": forms.TextInput(attrs={"autocomplete": "off"}),
            "match": forms.TextInput(),
            "rate": forms.NumberInput(),
        }

    def __init__(
        self, row: ProviderAccount, data: Any = None, *, service: str = "", **initial: object
    ) -> None:
        super().__init__(data, instance=row, initial=initial, label_suffix="", auto_id="account_%s")
        if row.pk:
            del self.fields["channel"]
        else:
            self._offer_channels()
        for name, value in self._stored().items():
            full = setting_name(self.kind, name)
            if full in self.fields and full not in SECRET_FIELDS:
                self.initial[full] = _shown(value)
        service_field = setting_name(self.kind, "service")
        self.service = service or str(self.initial.get(service_field, ""))
        if self.kind == provider_kinds.ANYMAIL and self.service in SERVICES:
            self._narrow(SERVICES[self.service])

    def _narrow(self, service: Service) -> None:
        """Leave the fields of an email service alone, under that service's names."""
        unsigned = service.check in (NEVER, "api_key")
        others = {name for name in OWN if name not in service.arguments}
        for name in others | ({"callback_secret"} if unsigned else set()):
            del self.fields[setting_name(self.kind, name)]
        field = self.fields[setting_name(self.kind, "service")]
        field.widget = forms.HiddenInput()
        self.initial[setting_name(self.kind, "service")] = self.service
        for name in {*service.arguments, "callback_secret", "base_url"}:
            if (full := setting_name(self.kind, name)) in self.fields:
                text = _("Required.") if name in service.needs else ""
                self.fields[full].help_text = text
                label = provider_kinds.setting_label(self.kind, name, self.service)
                self.fields[full].label = label

    @property
    def service_settings(self) -> frozenset[str]:
        """Return the settings that only the account's email service has."""
        service = SERVICES.get(self.service)  # type: ignore[call-overload]
        return frozenset(service.arguments if service else ())

    def _offer_channels(self) -> None:
        channels = sorted(providers.REGISTRY[self.kind].channels)
        field = self.fields["channel"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(each, wording.channel(each)) for each in channels]
        if len(channels) == 1:
            field.widget = forms.HiddenInput()

    def clean_name(self) -> str:
        """Check that no other account of the organization has the name."""
        name = str(self.cleaned_data["name"])
        rows = ProviderAccount.objects.filter(organization_id=self.instance.organization_id)
        if rows.filter(name=name).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(_("Another account has this name."))
        return name

    def _stored(self) -> dict[str, object]:
        try:
            settings = orjson.loads(self.instance.credentials) if self.instance.pk else {}
        except ValueError:
            return {}  # settings that can't be decrypted or read can be replaced in the form
        return settings if isinstance(settings, dict) else {}

    def clean(self) -> dict[str, Any]:
        """Check the settings by the provider's schema; each error is shown at its field."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        provider = providers.REGISTRY[self.kind]
        settings, missing_names = self._settings(cleaned)
        for name in missing_names:
            self.add_error(setting_name(self.kind, name), REPEATED_VALUE_NEEDED)
        if missing_names:
            return cleaned
        try:
            provider.Settings.model_validate(settings)
        except ValidationError as error:
            for setting, text in setting_problems(error):
                name = setting_name(self.kind, setting)
                self.add_error(name if name in self.fields else None, text)
        self.instance.credentials = orjson.dumps(settings).decode()
        return cleaned

    def _settings(self, cleaned: dict[str, object]) -> tuple[dict[str, object], list[str]]:
        """Return the settings to store, and the names of secrets that must be entered again."""
        fields = providers.REGISTRY[self.kind].Settings.model_fields
        typed = {name: cleaned.get(setting_name(self.kind, name), "") for name in fields}
        settings, missing_names = keep_secrets(fields, self._stored(), _with_port(typed))
        return {
            name: _converted(fields[name], value) for name, value in settings.items()
        }, missing_names


def _with_port(typed: dict[str, Any]) -> dict[str, Any]:
    """Return settings with the port that was typed behind the host, like mail.example:2525."""
    host, _, port = str(typed.get("host", "")).partition(":")
    return {**typed, "host": host, "port": port} if "port" in typed and port.isdecimal() else typed


def _converted(info: FieldInfo, value: object) -> object:
    """Return a value with the text of a list split into items."""
    kinds = {get_origin(kind) or kind for kind in types_of(info.annotation)}
    if isinstance(value, str) and kinds & {list, tuple, set, frozenset}:
        return [part.strip() for part in value.replace("\n", ",").split(",") if part.strip()]
    return value


@cache
def form_for(kind: str) -> type[AccountForm]:
    """Return the form of a kind of provider, with a field for each setting."""
    settings = providers.REGISTRY[kind].Settings.model_fields
    fields = {setting_name(kind, name): _field(kind, name, info) for name, info in settings.items()}
    return type("AccountForm", (AccountForm,), {"kind": kind, **fields})


def divided(form: forms.BaseForm) -> tuple[list[forms.BoundField], list[forms.BoundField]]:
    """Return the fields that a person fills in, and those that rarely differ from their default.

    Required settings, secrets and those that decide where these are sent come first.
    """
    usual: list[forms.BoundField] = []
    rare: list[forms.BoundField] = []
    for field in form.visible_fields():
        first = field.name in {"name", "channel"} or _is_usual(form, field.name)
        (usual if first or field.errors else rare).append(field)
    return usual, rare


def _is_usual(form: forms.BaseForm, name: str) -> bool:
    assert isinstance(form, AccountForm)
    settings = providers.REGISTRY[form.kind].Settings.model_fields
    for setting, info in settings.items():
        if name == setting_name(form.kind, setting):
            is_url = setting.endswith(("url", "ca_pem"))
            return not is_url and (
                info.is_required()
                or is_secret(info)
                or is_destination(info)
                or setting in ("username", "sender", *form.service_settings)
            )
    return False
