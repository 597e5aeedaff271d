"""Admin pages: bot settings, and API keys with the list of actions."""

from typing import Any

from django import forms
from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from bot import actions
from bot.models import BotSettings
from rme.tenants.access.roles import Permission
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.admin.keys import ApiKeyAdmin, ApiKeyForm
from rme.tenants.models import ApiKey


@admin.register(BotSettings)
class BotSettingsAdmin(TenantAdmin):
    read_permission: Permission = Permission.SEE_SETTINGS
    write_permission: Permission = Permission.CHANGE_SETTINGS
    list_display = ("organization", "always_200", "max_records")
    list_select_related = ("organization",)
    ordering = ("organization",)


class BotKeyForm(ApiKeyForm):
    """An API key form with a checkbox for each action."""

    actions = forms.MultipleChoiceField(
        label=_("Actions"),
        choices=[(name, name) for name in actions.ALL],
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=_("Actions that the key may use. Select none to allow all."),
    )


admin.site.unregister(ApiKey)


@admin.register(ApiKey)
class BotKeyAdmin(ApiKeyAdmin):
    """The page of API keys, with the actions of the bot API."""

    form: Any = BotKeyForm
