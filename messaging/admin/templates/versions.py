"""Pages for the versions of templates: editing, test and activation. The studio shows them."""

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import action

from messaging import accept
from messaging.admin.live_fields import MODEL_RIGHTS
from messaging.admin.templates.send_form import SendForm
from messaging.content import costly_steps, drafts, publishing, templates
from messaging.models import Template, TemplateVersion
from messaging.store.versions import TEXTS
from rme.core.errors import ApiError, InvalidPayload
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.admin.base import TenantAdmin


def studio_url(template: Template) -> str:
    """Return the address of a template's page in the studio."""
    args = [template.organization_id, template.name]
    query = urlencode({"language": template.language, "channel": template.channel})
    return f"{reverse('console:template', args=args)}?{query}"


def page_of(version: TemplateVersion) -> str:
    """Return the URL of a version's page."""
    return reverse("admin:messaging_templateversion_change", args=[version.pk])


@admin.register(TemplateVersion)
class TemplateVersionAdmin(TenantAdmin):
    """One version. Only drafts can be edited; any other change is a new version."""

    read_permission: Permission = Permission.SEE_TEMPLATES
    write_permission: Permission = MODEL_RIGHTS["messaging.TemplateVersion"]
    organization_path: ClassVar[str] = "template__organization_id"
    fixed_fields = ("template",)
    list_display = ("__str__", "state", "created_at", "activated_at")
    list_filter = ("state", "template__channel")
    list_select_related = ("template",)
    search_fields = ("template__name",)
    ordering = ("-id",)
    autocomplete_fields = ("template",)
    readonly_fields = ("version", "state", "created_at", "activated_at")
    actions_detail: ClassVar[list[str]] = ["studio", "send_test", "activate", "copy"]

    # --- the form -------------------------------------------------------------------------------
    def get_fields(self, request: HttpRequest, obj: Any = None) -> object:
        channel = obj.template.channel if obj else self._chosen_channel(request)
        texts = drafts.BY_CHANNEL.get(channel, TEXTS)
        form = ("template", *texts, "variables")
        if obj is None:
            return form
        return ("template", "version", "state", "activated_at", *form[1:])

    def _chosen_channel(self, request: HttpRequest) -> str:
        """Return the channel of the template that the URL names, or an empty text."""
        template_id = super().get_changeform_initial_data(request).get("template", 0)
        return (
            Template.objects.filter(pk=template_id).values_list("channel", flat=True).first() or ""
        )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, object]:
        """Start from the newest version, or from the one that `copy` names."""
        initial = super().get_changeform_initial_data(request)
        copied = str(initial.pop("copy", ""))
        if "template" not in initial:
            return initial
        rows = self.get_queryset(request).filter(template_id=initial["template"])
        newest = rows.order_by("-version")
        source = newest.filter(pk=_number(copied)).first() if copied else newest.first()
        names = (*TEXTS, "variables")
        return initial | ({name: getattr(source, name) for name in names} if source else {})

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return _draft(obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return _draft(obj) and super().has_delete_permission(request, obj)

    def has_activate_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self.may(request, Permission.PUBLISH_TEMPLATES, obj)

    def has_copy_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self.may(request, self.write_permission, obj)

    def save_model(
        self, request: HttpRequest, obj: TemplateVersion, form: ModelForm, change: bool
    ) -> None:
        """Save the draft as the studio does: a change ends its review and its order."""
        texts = {name: getattr(obj, name) for name in drafts.FIELDS}
        current = TemplateVersion.objects.filter(pk=obj.pk).first() if change else None
        seen = drafts.Seen(obj.version, current.revision) if current else drafts.Seen(anew=True)
        try:
            draft = drafts.save(obj.template, texts, audit.actor_of(request), seen)
        except drafts.DraftChanged as error:
            raise PermissionDenied from error  # it was made active meanwhile
        obj.__dict__.update({**draft.__dict__, "_state": obj._state})
        obj._state.adding = False

    def response_add(
        self, request: HttpRequest, obj: TemplateVersion, *arguments: object
    ) -> HttpResponse:
        """Lead to the studio, where it is tried and published."""
        if "_save" not in request.POST:
            return super().response_add(request, obj, *arguments)
        messages.success(request, f"{obj} is a draft. Try it, then publish it.")
        return HttpResponseRedirect(studio_url(obj.template))

    # --- buttons --------------------------------------------------------------------------------
    @action(description="Open in the studio", permissions=["view"])
    def studio(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Lead to the page where templates are written, tried and published."""
        row = self.get_object(request, object_id)
        return HttpResponseRedirect(f"{studio_url(row.template)}&version={row.version}")

    @action(description="Make active", permissions=["activate"])
    def activate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Activate a version, which may be an older one."""
        row = self.get_object(request, object_id)
        problems = _problems(row)
        if request.method == "POST" and not problems:
            try:
                publishing.publish(row, audit.actor_of(request))
            except InvalidPayload as error:
                problems = [(each.field, "", each.message) for each in error.details]
            except drafts.DraftChanged:
                problems = [
                    ("draft", "", "Somebody else has changed it meanwhile. Look at it again.")
                ]
            else:
                self.note(request, row, "", audit.Action.PUBLISHED)
                messages.success(request, f"{row} is active.")
                return HttpResponseRedirect(page_of(row))
        return self.show(request, "activate", row, title="Make active", problems=problems)

    @action(description="New version from this", url_path="copy", permissions=["copy"])
    def copy(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Open the form of a new version, filled with this one's text."""
        row = self.get_object(request, object_id)
        url = reverse("admin:messaging_templateversion_add")
        return HttpResponseRedirect(f"{url}?template={row.template_id}&copy={row.pk}")

    def has_send_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self.may(request, Permission.OPERATE, obj)

    @action(description="Send a test", url_path="send-test", permissions=["send"])
    def send_test(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send one message by the template to a contact, as REST would."""
        row = self.get_object(request, object_id)
        template = row.template
        if row.state != TemplateVersion.State.ACTIVE:
            messages.warning(request, "Messages are sent by the active version: activate this one.")
            return HttpResponseRedirect(page_of(row))
        form = SendForm(row, request.POST or None)
        if form.is_valid():
            body = {
                "channel": template.channel,
                "category": template.category,
                "to": [{"contactId": form.cleaned_data["contact"]}],
                "template": {"name": template.name, "language": template.language},
                "context": {"variables": form.cleaned_data["variables"]},
            }
            try:
                message_id = accept.send(template.organization_id, body).message_id
            except ApiError as error:
                form.add_error(None, error.message)
            else:
                self.note(request, row, f"message {message_id}", audit.Action.TESTED)
                names = [template.organization_id, message_id]
                return HttpResponseRedirect(reverse("console:message", args=names))
        question = f"Send a message by {template} to a contact, through the provider. Consent, "
        question += "suppressions and pauses count as for any message."
        context = {"title": "Send a test", "question": question, "form": form}
        return self.show(request, "ask", row, **context)


def _draft(version: TemplateVersion | str | None) -> bool:
    """Return whether a version may be edited. The theme passes its id."""
    if isinstance(version, str):
        rows = TemplateVersion.objects.filter(pk=_number(version))
        return rows.filter(state=TemplateVersion.State.DRAFT).exists()
    return version is None or version.state == TemplateVersion.State.DRAFT


def _number(text: str) -> int:
    """Return the key in a URL, or 0, which no row has."""
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _problems(version: TemplateVersion) -> list[tuple[str, str, str]]:
    """Return what prevents the activation of a version: the field, its text, and the problem."""
    texts = {name: getattr(version, name) for name in (*TEXTS, "variables")}
    organization_id = version.template.organization_id
    sources = [(texts, templates.partials(organization_id))]
    (checked,) = costly_steps.check_versions(organization_id, sources)
    return [
        (
            problem.field,
            str(texts.get(problem.field, "")),
            f"line {problem.line}: {problem.message}",
        )
        for problem in checked.problems
    ]
