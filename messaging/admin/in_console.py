"""Addresses of accounts, sender domains and webhook endpoints, which lead to the console."""

from django.contrib import admin

from messaging.admin.console_lists import InConsole
from messaging.models import ProviderAccount, SenderDomain, WebhookEndpoint
from rme.tenants.access.roles import Permission


class SettingsInConsole(InConsole):
    read_permission: Permission = Permission.SEE_SETTINGS
    write_permission: Permission = Permission.CHANGE_SETTINGS


@admin.register(ProviderAccount)
class ProviderAccountAdmin(SettingsInConsole):
    console_list = console_new = "providers"
    console_page = "provider"
    exclude = ("credentials",)


@admin.register(SenderDomain)
class SenderDomainAdmin(SettingsInConsole):
    console_list = "domains"
    console_new = "new_domain"
    console_page = "domain"


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(SettingsInConsole):
    write_permission: Permission = Permission.CHANGE_WEBHOOKS
    console_list = "webhooks"
    console_new = "new_webhook"
    console_page = "webhook_deliveries"
    exclude = ("secret", "former_secret")
