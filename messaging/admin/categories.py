"""The page for categories. Only an owner makes one opt-out, and sees the effect before."""

from collections.abc import Iterable
from itertools import permutations
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.validators import RegexValidator
from django.db.models import CharField, Count, Exists, Model, OuterRef, Q, QuerySet
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldBooleanSwitchWidget

from messaging.admin.durations import DurationInput
from messaging.admin.policy import PolicyAdmin
from messaging.console import wording
from messaging.domain.channels import ALL, Channel
from messaging.domain.policy import DEFAULT_CHANNEL_ORDER
from messaging.models import Category, ConsentEntry
from messaging.policy import organization_policy
from push.models import Device
from rme.crm import platforms
from rme.crm.models import Contact
from rme.tenants.access.roles import Permission, organizations_for
from rme.tenants.admin.choices import TenantForm
from rme.tenants.models import Organization

OPT_OUT = Category.Regime.OPT_OUT
NAME = r"^[A-Z][A-Z0-9_]{0,63}$"
"""As the model has it, whose message doesn't say what is wrong."""
_CONTACT_ID = Cast(OuterRef("pk"), CharField())


def newly_reachable(organization_id: str, category: str) -> str:
    """Return in words who can be reached once a category is opt-out: who has decided nothing.

    One statement; contacts of a remote platform are not counted.
    """
    if platforms.get(organization_id).kind != platforms.EMBEDDED:
        return gettext("everybody on the platform who has neither agreed nor objected")
    devices = Device.objects.filter(
        organization_id=organization_id, contact_id=_CONTACT_ID, active=True
    )
    addresses = {
        Channel.EMAIL: ~Q(email=""),
        Channel.SMS: ~Q(mobile=""),
        Channel.PUSH: Q(Exists(devices)),
    }
    counts = Contact.objects.filter(organization_id=organization_id).aggregate(
        **{
            channel: Count(
                "pk", filter=has_address & ~Q(_decided(organization_id, channel, category))
            )
            for channel, has_address in addresses.items()
        }
    )
    return ", ".join(
        ngettext("%(number)s person by %(channel)s", "%(number)s people by %(channel)s", count)
        % {"number": f"{count:,}", "channel": wording.channel_noun(channel)}
        for channel, count in counts.items()
    )


def _decided(organization_id: str, channel: str, category: str) -> Exists:
    return Exists(
        ConsentEntry.objects.filter(
            organization_id=organization_id,
            contact_id=_CONTACT_ID,
            channel__in=(channel, ALL),
            category__in=(category, ALL),
        )
    )


class ChannelOrderField(forms.ChoiceField):
    """Channels in their order."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=_orders, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return ",".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        """Return the channels as a list."""
        return [channel for channel in super().clean(value).split(",") if channel]

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.prepare_value(initial or []) != (data or ""))


def _orders() -> list[tuple[str, str]]:
    default = gettext("Default: %(order)s") % {"order": _then(DEFAULT_CHANNEL_ORDER)}
    orders = (order for size in (1, 2, 3) for order in permutations(Channel, size))
    return [("", default), *((",".join(order), _then(order)) for order in orders)]


def _then(order: Iterable[Channel]) -> str:
    return gettext(", then ").join(map(wording.channel, order))


class CategoryForm(TenantForm):
    """A category. A change to opt-out shows its effect before it is saved."""

    owned: ClassVar[QuerySet[Organization]] = Organization.objects.none()
    """The organizations whose settings the person may change."""
    accept_effect = forms.BooleanField(
        label=_("Write to people who haven't agreed"),
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text=_(
            "Required when a category becomes opt-out. The form first shows how many people "
            "that is."
        ),
    )
    channel_order = ChannelOrderField(
        label=_("Channel order"),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=_("The channels that rme tries if a message names none."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if name := self.fields.get("name"):
            text = gettext(
                "Begin with a capital letter. Use capital letters, digits and _, like NEWS."
            )
            name.validators.append(RegexValidator(NAME, text))
        helps = {
            "expires_after": gettext("A message that couldn't be sent by then expires."),
            "cap_window": gettext("The time in which the cap counts messages."),
        }
        for duration, text in helps.items():
            if duration in self.fields:
                self.fields[duration].widget = DurationInput()
                self.fields[duration].help_text = text

    def clean(self) -> dict[str, Any]:
        """Refuse a change to opt-out, unless an owner has seen its effect."""
        cleaned = super().clean()
        organization, name = self.own_organization(), cleaned.get("name") or self.instance.name
        if not organization or not name or cleaned.get("regime") != OPT_OUT:
            return cleaned
        if not organization_policy.of(organization.pk).rules(name).opt_in:
            return cleaned
        if not self.owned.filter(pk=organization.pk).exists():
            self.add_error("regime", gettext("Only owners can allow messages without consent."))
        elif not cleaned.get("accept_effect"):
            reached = newly_reachable(organization.pk, name)
            text = gettext(
                "%(name)s messages may then reach %(reached)s, who haven't agreed. Nothing is "
                "saved yet: switch this on to save."
            )
            self.add_error("accept_effect", text % {"name": name, "reached": reached})
        return cleaned


@admin.register(Category)
class CategoryAdmin(PolicyAdmin):
    form = CategoryForm
    list_display = ("name", "regime", "on_unknown", "expires_after", "cap_count", "organization")
    list_filter = ("regime", "on_unknown")
    search_fields = ("name",)
    list_before_template = "admin/rme/built_in_categories.html"
    empty_text = _("No other categories yet")
    fixed_fields = ("organization", "name")  # templates, consent and messages hold the name
    fields = (
        *("organization", "name", "regime", "accept_effect", "on_unknown", "expires_after"),
        *("cap_count", "cap_window", "channel_order"),
    )
    conditional_fields: ClassVar[dict[str, str]] = {"accept_effect": f"regime === '{OPT_OUT}'"}

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> object:
        # a reader has no form, which the switch belongs to
        writes = obj is None or self.has_change_permission(request, obj)
        return [name for name in self.fields if writes or name != "accept_effect"]

    def get_form(
        self, request: HttpRequest, obj: object = None, change: bool = False, **kwargs: object
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)  # a class made for this request
        form.owned = organizations_for(request, Permission.CHANGE_SETTINGS)
        return form
