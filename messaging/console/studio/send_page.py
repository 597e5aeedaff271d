"""Sending the active version of a template to one person: a form, a preview, and a confirmation."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse

from messaging.accept import dry_run, results, send
from messaging.accept.requests import MESSAGE
from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.actions.bulk_actions import PROGRAM
from messaging.console.studio import live, variants, written
from messaging.content import previews, samples
from messaging.content.samples import SampleField
from messaging.models import Template, TemplateVersion
from rme.core import errors, ids
from rme.core.http.parsing import parse
from rme.crm import people
from rme.crm.connectors.records import ContactRecord
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action
from rme.tenants.oauth.authentication import Caller

YES_OR_NO = [("true", "Yes"), ("false", "No")]


class SendForm(forms.Form):
    """The recipient, and a field for each plain variable, which begins with its sample."""

    contact = forms.CharField(
        max_length=254,
        label="Recipient",
        help_text="The email address, phone number, name or id of a contact.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(
        self, viewer: Viewer, version: TemplateVersion, initial: str, data: QueryDict | None = None
    ) -> None:
        super().__init__(data, auto_id="send_%s", label_suffix="", initial={"contact": initial})
        self.viewer = viewer
        self.schema = _schema(viewer, version)
        for field in samples.fields(self.schema):
            self.fields[f"{written.SAMPLE}{field.path}"] = _field(field)

    def clean_contact(self) -> ContactRecord:
        """Return the only contact that fits what was typed."""
        try:
            contacts = people.find(
                self.viewer.organization_id, self.cleaned_data["contact"], limit=2
            )
        except errors.Unavailable as error:
            raise forms.ValidationError(error.message) from error
        if len(contacts) == 1:
            return contacts[0]
        if contacts:
            raise forms.ValidationError("Several contacts match. Enter the id of one of them.")
        raise forms.ValidationError("No contact matches. Add the person under Contacts first.")

    @property
    def variables(self) -> dict[str, object]:
        """Return the variables of a valid form; an empty field has no value."""
        typed = {
            name.removeprefix(written.SAMPLE): value for name, value in self.cleaned_data.items()
        }
        return samples.filled(self.schema, typed)


def _schema(viewer: Viewer, version: TemplateVersion) -> dict[str, object]:
    """Return the schema, with a text for each variable that only the texts name."""
    values = samples.variables(version.variables)
    preview = previews.preview_texts(viewer.organization, version, samples.PERSON, values)
    missing = preview.rendered.missing if preview.rendered else ()
    return samples.with_missing(version.variables, missing)


def _field(field: SampleField) -> forms.Field:
    options: dict[str, Any] = {
        "label": field.label,
        "required": field.is_required,
        "initial": field.value,
    }
    match field.kind:
        case "boolean":
            initial = "true" if field.value else "false"
            return forms.ChoiceField(**{**options, "initial": initial}, choices=YES_OR_NO)
        case "choice":
            empty = [] if field.is_required else [("", "No value")]
            choices = [*empty, *((each, each) for each in field.choices)]
            return forms.ChoiceField(**options, choices=choices)
        case "integer":
            return forms.IntegerField(**options)
        case "number":
            return forms.FloatField(**options)
        case "list" | "numbers":
            widget = forms.Textarea(attrs={"rows": 3})
            return forms.CharField(**options, widget=widget, help_text="One on each line.")
    return forms.CharField(**options)


@access.page_for(Permission.OPERATE)
def show(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Return the form; a POST returns the preview, and the POST of that sends the message."""
    template = live.template_of(request, viewer, name)
    version = template.versions.filter(state=TemplateVersion.State.ACTIVE).first()
    if version is None:
        raise Http404
    form = SendForm(viewer, version, request.GET.get("contact", ""), request.POST or None)
    context: Mapping[str, object] = {}
    if form.is_valid():
        try:
            contact: ContactRecord = form.cleaned_data["contact"]
            body = _body(template, contact, form.variables)
            if request.POST.get("do") == "send":
                return _send(request, viewer, version, body)
            context = _preview(viewer, contact, body)
        except ValueError as error:
            form.add_error(None, str(error))
        except errors.ApiError as error:
            lines = [f"{each.field}: {each.message}" for each in error.details]
            for line in lines or [error.message]:
                form.add_error(None, line)
    return access.show(
        request,
        viewer,
        "studio/send",
        f"Send {name} to one person",
        others_page="console:templates",
        variant=template,
        version=version,
        back=variants.url_of(template),
        form=form,
        typed=[(each.html_name, each.data) for each in form] if context else [],
        key=ids.new_text_id(),
        **context,
    )


def _body(
    template: Template, contact: ContactRecord, variables: Mapping[str, object]
) -> dict[str, object]:
    """Return the request as a caller would write it."""
    return {
        "channel": template.channel,
        "category": template.category,
        "to": [{"contactId": contact.id}],
        "template": {"name": template.name, "language": template.language},
        "context": {"variables": variables},
    }


def _preview(
    viewer: Viewer, contact: ContactRecord, body: dict[str, object]
) -> Mapping[str, object]:
    """Return what the page shows of a message that isn't sent yet. Raise ApiError."""
    caller = Caller(viewer.organization, PROGRAM, viewer.user.pk, test=False)
    dry = dry_run.dry_run(caller, parse(MESSAGE, body), request_id="")
    if isinstance(dry.result, results.Refusal):
        raise dry.result.error
    (recipient,) = dry.recipients
    if recipient.render_error:
        raise errors.InvalidPayload.at("template", recipient.render_error)
    return {
        "contact": contact,
        "address": viewer.shown(contact.email if body["channel"] == "EMAIL" else contact.mobile),
        "content": recipient.content,
        "provider": recipient.result.provider,
    }


def _send(
    request: HttpRequest, viewer: Viewer, version: TemplateVersion, body: dict[str, object]
) -> HttpResponseBase:
    """Send the message, once for each preview, and lead to its page. Raise ApiError."""
    key = f"console {viewer.user.pk} {request.POST.get('key', '')}"
    result = send(viewer.organization_id, body, idempotency_key=key, user_id=viewer.user.pk)
    if not result.replayed:
        access.note(viewer, Action.TESTED, version, text=f"message {result.message_id}")
    messages.success(request, "The message is accepted.")
    args = [viewer.organization_id, result.message_id]
    return HttpResponseRedirect(reverse("console:message", args=args))
