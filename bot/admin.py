"""Pages for the bot service: its settings, and its keys with the actions that there are."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from bot import actions
from bot.models import BotSettings
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.admin.keys import ApiKeyAdmin, ApiKeyForm
from rme.tenants.models import ApiKey
from rme.tenants.roles import OWNERS


@admin.register(BotSettings)
class BotSettingsAdmin(TenantAdmin):
    writers: ClassVar[frozenset[str]] = OWNERS
    list_display = ("organization", "always_200", "max_records")
    list_select_related = ("organization",)
    ordering = ("organization",)


class BotKeyForm(ApiKeyForm):
    """A key whose actions are ticked."""

    actions = forms.MultipleChoiceField(
        choices=[(name, name) for name in actions.ALL],
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What the key may do; none ticked: everything.",
    )


admin.site.unregister(ApiKey)


@admin.register(ApiKey)
class BotKeyAdmin(ApiKeyAdmin):
    """The keys' page, which knows the actions here."""

    form: Any = BotKeyForm
