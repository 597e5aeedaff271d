"""Pages for templates and their versions: editing, previewing, making active."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from unfold.admin import TabularInline
from unfold.decorators import action

from messaging import rendering, templates
from messaging.models import Template, TemplateVersion
from rme.core.errors import InvalidPayload
from rme.tenants.admin_base import TenantAdmin

SAMPLE = {
    "contact": {
        "first_name": "Ada",
        "last_name": "Lovelace",
        "name": "Ada Lovelace",
        "email": "ada@example.com",
        "mobile": "+12125550100",
    },
    "org": {"id": "sample", "name": "Sample"},
    "sender": {"name": "Sample"},
}
"""Who a preview is for."""


class VersionInline(TabularInline):  # type: ignore[misc]
    """The versions of a template, each with a link to its page."""

    model = TemplateVersion
    fields = ("page", "state", "created_at", "activated_at")
    readonly_fields = fields
    extra = 0
    max_num = 0
    can_delete = False

    @admin.display(description="version")
    def page(self, row: TemplateVersion) -> str:
        url = reverse("admin:messaging_templateversion_change", args=[row.pk])
        return format_html('<a href="{}">version {}</a>', url, row.version)

    def has_add_permission(self, *_: Any) -> bool:
        return False


@admin.register(Template)
class TemplateAdmin(TenantAdmin):
    list_display = ("name", "language", "channel", "category", "organization")
    list_filter = ("channel", "language", "category")
    search_fields = ("name",)
    list_select_related = ("organization",)
    inlines: ClassVar[list[Any]] = [VersionInline]
    actions_detail: ClassVar[list[str]] = ["new_version"]

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj else []

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("organization", "name", "language", "channel") if obj else ()

    @action(description="New version", permissions=["change"])
    def new_version(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Open the form of a new version, filled with the newest one's text."""
        url = reverse("admin:messaging_templateversion_add")
        return HttpResponseRedirect(f"{url}?template={object_id}")


@admin.register(TemplateVersion)
class TemplateVersionAdmin(TenantAdmin):
    """One version. What is or was active is never edited: a change is a new version."""

    organization_path: ClassVar[str] = "template__organization_id"
    list_display = ("__str__", "state", "created_at", "activated_at")
    list_filter = ("state",)
    list_select_related = ("template",)
    search_fields = ("template__name",)
    autocomplete_fields = ("template",)
    readonly_fields = ("version", "state", "created_at", "activated_at", "preview")
    actions_detail: ClassVar[list[str]] = ["activate"]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        initial = super().get_changeform_initial_data(request)
        newest = (
            self.get_queryset(request)
            .filter(template_id=initial.get("template") or 0)
            .order_by("-version")
            .first()
        )
        if newest:
            kept = (*templates.TEXTS, "variables")
            initial |= {name: getattr(newest, name) for name in kept}
        return initial

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        draft = obj is None or obj.state == TemplateVersion.State.DRAFT
        return draft and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        draft = obj is None or obj.state == TemplateVersion.State.DRAFT
        return draft and super().has_delete_permission(request, obj)

    def save_model(
        self, request: HttpRequest, obj: TemplateVersion, form: ModelForm, change: bool
    ) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        texts = {name: getattr(obj, name) for name in (*templates.TEXTS, "variables")}
        made = templates.save_version(obj.template, texts)
        obj.pk, obj.version = made.pk, made.version

    @action(description="Make active", permissions=["view"])
    def activate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Make a version the active one; an older one becomes active again in the same way."""
        row = self.get_object(request, object_id)
        if row is None or not TenantAdmin.has_change_permission(self, request, row):
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if request.method != "POST":
            question = f"Send {row} from now on? The active version before it is kept."
            return self.ask(request, "Make active", question)
        try:
            templates.activate(row)
        except InvalidPayload as error:
            for detail in error.details:
                messages.error(request, f"{detail.field}: {detail.message}")
        else:
            self.note(request, row, "Made active")
            messages.success(request, f"{row} is active.")
        return HttpResponseRedirect(
            reverse("admin:messaging_templateversion_change", args=[row.pk])
        )

    @admin.display(description="preview")
    def preview(self, row: TemplateVersion) -> str:
        """Show what the text renders to for a sample person; HTML in a frame without scripts."""
        if not row.pk:
            return "Save the version to see it."
        try:
            return _preview(row)
        except (rendering.TemplateSyntax, rendering.RenderLimit, rendering.RenderFailed) as error:
            return format_html("<strong>{}</strong>", str(error))


def _preview(row: TemplateVersion) -> str:
    texts = templates.sources(row)
    if row.mjml and not row.compiled_html:
        texts["html"] = rendering.compile_mjml(row.mjml)
    compiled = rendering.compile_source(texts)
    match row.template.channel:
        case "SMS":
            text = rendering.render_sms(compiled, SAMPLE)
            size = rendering.segments(text)
            told = f"{size.encoding}, {size.units} units, {size.segments} segment(s)"
            return _lines([("Text", text), ("Size", told)])
        case "PUSH":
            push = rendering.render_push(compiled, SAMPLE)
            pairs = [("Title", push.title), ("Body", push.body), ("Data", dict(push.data))]
            return _lines([*pairs, ("Missing", ", ".join(push.missing) or "nothing")])
    mail = rendering.render_email(compiled, SAMPLE)
    head = _lines(
        [
            ("Subject", mail.subject),
            ("Missing", ", ".join(mail.missing) or "nothing"),
            ("Text", mail.text),
        ]
    )
    frame = format_html(
        '<iframe sandbox="" srcdoc="{}" title="HTML" class="w-full h-96 bg-white"></iframe>',
        mail.html,
    )
    return format_html("{}{}", head, frame if mail.html else "")


def _lines(pairs: list[tuple[str, Any]]) -> str:
    return format_html_join(
        "",
        '<p><strong>{}:</strong> <span class="whitespace-pre-wrap">{}</span></p>',
        ((name, str(value)) for name, value in pairs),
    )
