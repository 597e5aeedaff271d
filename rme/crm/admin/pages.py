"""Admin pages of the embedded records."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from rme.crm import tasks
from rme.crm.admin.record_imports import RecordImports
from rme.crm.models import (
    Account,
    Case,
    CaseComment,
    Event,
    EventRegistration,
    Exhibitor,
    RecordImport,
    Speaker,
)
from rme.crm.records import export, files
from rme.tenants.access.roles import Permission
from rme.tenants.admin.base import TenantInline


class RecordAdmin(RecordImports):
    """Base of the pages: id and time are read-only; records can be imported and exported."""

    read_permission: Permission = Permission.SEE_PEOPLE
    write_permission: Permission = Permission.CHANGE_PEOPLE
    readonly_fields = ("id", "created_at")
    list_select_related: Any = ("organization",)
    # Ids sort by time. A column without an index would sort the whole table for one page.
    ordering: Any = ("-id",)
    formfield_overrides: ClassVar[dict[Any, Any]] = {models.URLField: {"assume_scheme": "https"}}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.file_columns = files.names(self.model)
        self.file_noun = self.opts.verbose_name_plural

    def get_readonly_fields(self, request: HttpRequest, obj: object = None) -> Any:
        names: Any = super().get_readonly_fields(request, obj)
        return names if obj else [name for name in names if name not in RecordAdmin.readonly_fields]

    def import_runs(self) -> QuerySet[RecordImport]:
        return RecordImport.objects.filter(kind=self.model.__name__)

    def request_import(self) -> None:
        tasks.request_import()

    def export_work(self, organization_id: str) -> tuple[Any, ...]:
        return export.export, organization_id, self.model


@admin.register(Account)
class AccountAdmin(RecordAdmin):
    list_display = ("name", "phone", "website", "organization", "created_at")
    search_fields = ("name", "phone")


class CommentInline(TenantInline):
    """Comments on a case: they can be added, not changed."""

    model = CaseComment
    fields = ("text", "author", "added")
    readonly_fields = ("author", "added")
    ordering = ("id",)

    @admin.display(description=gettext_lazy("added"))
    def added(self, row: CaseComment) -> object:
        """Return when a comment was added; a new one has no time yet."""
        return None if row._state.adding else row.created_at

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Case)
class CaseAdmin(RecordAdmin):
    inlines: ClassVar[list[Any]] = [CommentInline]
    list_display = ("number", "subject", "status", "priority", "contact", "organization")
    search_fields = ("number", "subject", "contact__email", "contact__last_name")
    list_filter = ("status", "priority")
    list_select_related = ("contact", "organization")
    autocomplete_fields = ("contact", "account")

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        for row_form in formset.forms:
            row_form.instance.organization_id = form.instance.organization_id
            row_form.instance.author = row_form.instance.author or request.user.get_username()
        super().save_formset(request, form, formset, change)


@admin.register(Event)
class EventAdmin(RecordAdmin):
    list_display = ("name", "starts_at", "ends_at", "organization")
    list_filter = ("starts_at",)
    search_fields = ("name",)


class AtEventAdmin(RecordAdmin):
    """Base of the pages for records of an event."""

    list_select_related: Any = ("event", "contact", "organization")
    autocomplete_fields: Any = ("event", "contact")


@admin.register(EventRegistration)
class EventRegistrationAdmin(AtEventAdmin):
    list_display = ("name", "email", "event", "status", "attended", "organization")
    list_filter = ("status", "attended")
    search_fields = ("name", "email", "event__name")


@admin.register(Speaker)
class SpeakerAdmin(AtEventAdmin):
    list_display = ("contact", "event", "session_title", "room", "status", "organization")
    list_filter = ("status",)
    search_fields = ("session_title", "contact__last_name", "contact__email", "event__name")


@admin.register(Exhibitor)
class ExhibitorAdmin(AtEventAdmin):
    list_display = ("account", "contact", "event", "booth", "level", "status", "organization")
    list_filter = ("status", "level")
    list_select_related = ("event", "contact", "account", "organization")
    search_fields = ("booth", "account__name", "contact__last_name", "event__name")
    autocomplete_fields = ("event", "contact", "account")
