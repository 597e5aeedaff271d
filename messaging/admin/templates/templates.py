"""Pages for templates, with their versions as a list."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from unfold.decorators import action
from unfold.widgets import UnfoldAdminSelectWidget

from messaging.admin.categories import check_category
from messaging.admin.live_fields import FIELD_RIGHTS, MODEL_RIGHTS, is_committed
from messaging.admin.templates.versions import page_of, studio_url
from messaging.domain.policy import BUILT_IN
from messaging.models import Category, Template, TemplateVersion
from rme.tenants.access.roles import Permission, organizations_for
from rme.tenants.admin.base import TenantAdmin, TenantInline
from rme.tenants.admin.choices import TenantForm
from rme.tenants.organizations import languages

USED = (
    "{}: it has a version that is or was active, and messages refer to it. To stop sending it, add "
    "a pause that names the template (Sending, Pauses)."
)
"""Why a template cannot be deleted, and what to do instead."""


class VersionInline(TenantInline):
    """The versions of a template, each with a link to its page."""

    model = TemplateVersion
    fields = ("page", "state", "created_at", "activated_at")
    readonly_fields = fields
    ordering = ("-version",)
    max_num = 0
    can_delete = False

    @admin.display(description="version")
    def page(self, row: TemplateVersion) -> str:
        return format_html('<a href="{}">version {}</a>', page_of(row), row.version)


CATEGORIES = 500
"""The most categories that the form of a template offers."""


class TemplateForm(TenantForm):
    """A template. Its category must exist."""

    categories: ClassVar[list[str]] = []
    """The categories to choose from: the form is a class made for each request."""
    may_publish: ClassVar[bool] = False
    """Whether the person may change what live messages are."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        category = self.instance.category
        names = sorted({*BUILT_IN, *self.categories, *filter(None, [category])})
        offered = {"category": [(each, each) for each in names], "language": languages.choices()}
        for name in offered.keys() & self.fields.keys():
            choices = [("", "Choose"), *offered[name]]
            self.fields[name].widget = UnfoldAdminSelectWidget(choices=choices)

    def clean(self) -> dict[str, Any]:
        """Check that the category exists."""
        cleaned = super().clean()
        if cleaned.get("language") and not languages.is_language(cleaned["language"]):
            self.add_error("language", "There is no such language or country.")
        check_category(self, cleaned.get("category", ""))
        is_moved = "category" in self.changed_data and self.instance.pk
        if is_moved and not self.may_publish and is_committed(self.instance):
            self.add_error("category", COMMITTED)
        return cleaned


COMMITTED = (
    "This template sends messages, or soon will. Ask somebody who may publish templates "
    "to change its category."
)


@admin.register(Template)
class TemplateAdmin(TenantAdmin):
    read_permission: Permission = Permission.SEE_TEMPLATES
    write_permission: Permission = MODEL_RIGHTS["messaging.Template"]
    form = TemplateForm
    list_display = ("name", "language", "channel", "category", "active_version", "organization")
    list_filter = ("channel", "language", "category")
    search_fields = ("name",)
    ordering = ("name", "language", "channel")
    list_select_related = ("organization",)
    fixed_fields = ("organization", "name", "language", "channel")
    inlines: ClassVar[list[Any]] = [VersionInline]
    actions_detail: ClassVar[list[str]] = ["studio", "new_version"]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: object
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        rows = Category.objects.filter(
            organization__in=organizations_for(request, self.write_permission)
        )
        rows = rows.filter(organization=obj.organization_id) if obj else rows
        names = rows.order_by("name").values_list("name", flat=True).distinct()
        form.categories = list(names[:CATEGORIES])
        right = FIELD_RIGHTS["messaging.Template.category"]
        form.may_publish = self.may(request, right, obj)
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, object]:
        """Start with the organization's language."""
        initial = super().get_changeform_initial_data(request)
        organizations = organizations_for(request, self.write_permission)
        language_of_organization = organizations.filter(
            pk=initial.get("organization", "")
        ).values_list("language", flat=True)
        return {"language": language_of_organization.first() or "", **initial}

    def response_add(self, request: HttpRequest, obj: Template, *arguments: object) -> HttpResponse:
        """Lead to the studio, where its first version is written."""
        if "_save" not in request.POST:
            return super().response_add(request, obj, *arguments)
        messages.success(request, f"{obj} was added. Write its first version.")
        return HttpResponseRedirect(studio_url(obj))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Template]:
        active = TemplateVersion.objects.filter(
            template=OuterRef("pk"), state=TemplateVersion.State.ACTIVE
        )
        return super().get_queryset(request).annotate(active=Subquery(active.values("version")))

    @admin.display(description="active version")
    def active_version(self, row: Any) -> str:
        return str(row.active) if row.active else "none"

    def get_inlines(self, request: HttpRequest, obj: object) -> Any:
        return self.inlines if obj else []

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Report templates that have sent as protected: their messages refer to the versions."""
        deleted, counts, permissions, protected = super().get_deleted_objects(objs, request)
        used = TemplateVersion.objects.exclude(state=TemplateVersion.State.DRAFT)
        sent = used.filter(template__in=objs).values_list("template", flat=True)
        reasons = [USED.format(row) for row in objs if row.pk in set(sent)]
        permissions.discard(str(TemplateVersion._meta.verbose_name))
        return deleted, counts, permissions, [*protected, *reasons]

    @action(description="Open in the studio", permissions=["view"])
    def studio(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Lead to the page where templates are written, tried and published."""
        return HttpResponseRedirect(studio_url(self.get_object(request, object_id)))

    @action(description="New version", permissions=["change"])
    def new_version(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Open the form of a new version, filled with the newest one's text."""
        url = reverse("admin:messaging_templateversion_add")
        return HttpResponseRedirect(f"{url}?template={self.get_object(request, object_id).pk}")
