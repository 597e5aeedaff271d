"""Pages for the records of the embedded platform."""

from typing import Any

from django.contrib import admin

from rme.crm.models import (
    Account,
    Case,
    Contact,
    Event,
    EventRegistration,
    Exhibitor,
    Speaker,
)
from rme.tenants.admin_base import TenantAdmin


class RecordAdmin(TenantAdmin):
    """Base: the id and the time are shown, and never edited."""

    readonly_fields = ("id", "created_at")
    list_select_related: Any = ("organization",)


@admin.register(Account)
class AccountAdmin(RecordAdmin):
    list_display = ("name", "phone", "website", "organization", "created_at")
    search_fields = ("name", "phone")


@admin.register(Contact)
class ContactAdmin(RecordAdmin):
    list_display = ("__str__", "email", "mobile", "language", "zone", "organization")
    search_fields = ("first_name", "last_name", "email", "mobile", "phone", "id")
    list_select_related = ("organization",)
    autocomplete_fields = ("account",)


@admin.register(Case)
class CaseAdmin(RecordAdmin):
    list_display = ("number", "subject", "status", "priority", "contact", "organization")
    search_fields = ("number", "subject")
    list_filter = ("status",)
    list_select_related = ("contact", "organization")
    autocomplete_fields = ("contact", "account")


@admin.register(Event)
class EventAdmin(RecordAdmin):
    list_display = ("name", "starts_at", "ends_at", "organization")
    search_fields = ("name",)


class AtEventAdmin(RecordAdmin):
    list_select_related = ("event", "contact", "organization")
    autocomplete_fields = ("event", "contact")


@admin.register(EventRegistration)
class EventRegistrationAdmin(AtEventAdmin):
    list_display = ("name", "email", "event", "status", "attended", "organization")
    search_fields = ("name", "email")


@admin.register(Speaker)
class SpeakerAdmin(AtEventAdmin):
    list_display = ("contact", "event", "session_title", "room", "status", "organization")
    search_fields = ("session_title", "contact__last_name")


@admin.register(Exhibitor)
class ExhibitorAdmin(AtEventAdmin):
    list_display = ("account", "contact", "event", "booth", "level", "organization")
    list_select_related = ("event", "contact", "account", "organization")
    search_fields = ("booth", "account__name")
    autocomplete_fields = ("event", "contact", "account")
