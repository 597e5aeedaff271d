"""The variables of a template as JSON Schema, for what the studio's rows can't show."""

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.studio import live, variants, written
from messaging.content import drafts
from rme.core.http.json_field import JsonField
from rme.tenants.access.roles import Permission

CHANGED = gettext_lazy(
    "{person} changed the draft in the meantime. Nothing was overwritten. Copy your schema, open "
    "the page again, and add your changes to theirs."
)


class _Indented(json.JSONEncoder):
    """Writes one value on each line, for people."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "indent": 2})


class SchemaForm(forms.Form):
    """The schema of a version's variables."""

    schema = JsonField(
        required=False,
        label="JSON Schema",
        encoder=_Indented,
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false"}),
        help_text=gettext_lazy("Draft 2020-12. A request whose variables don't fit is rejected."),
        error_messages={
            "invalid": gettext_lazy("This isn't JSON. Check quotes, commas and brackets.")
        },
    )

    def clean_schema(self) -> dict[str, object]:
        schema: object = self.cleaned_data["schema"] or {}
        if not isinstance(schema, dict):
            raise forms.ValidationError(_('Enter an object, such as {"type": "object"}.'))
        return schema


@access.page_for(Permission.SEE_TEMPLATES)
def show(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Return the schema of the draft, else of the active version; a POST saves it as a draft."""
    template = live.template_of(request, viewer, name)
    version = live.shown_version(template)
    schema = version.variables if version else {}
    form = SchemaForm(initial={"schema": schema}, label_suffix="")
    url = variants.url_of(template)
    may_change = viewer.may(Permission.CHANGE_TEMPLATES)
    if request.method == "POST":
        viewer.require(Permission.CHANGE_TEMPLATES)
        form = SchemaForm(request.POST, label_suffix="")
        if form.is_valid():
            texts = {"variables": form.cleaned_data["schema"]}
            try:
                row = live.store(viewer, template, texts, written.seen(request.POST))
            except drafts.DraftChanged as error:
                by = (error.row and error.row.edited_by) or _("Somebody else")
                form.add_error("schema", CHANGED.format(person=by))
            else:
                words = _("Draft {number} is saved with the new schema.")
                messages.success(request, words.format(number=row.version))
                return HttpResponseRedirect(url)
    seen = {key: getattr(version, key) if version else 0 for key in ("version", "revision")}
    if form.is_bound:
        seen = {key: request.POST.get(key, "0") for key in seen}
    form.fields["schema"].widget.attrs["readonly"] = not may_change
    return access.show(
        request,
        viewer,
        "studio/schema",
        _("Variables of {template}").format(template=name),
        variant=template,
        back=url,
        back_name=variants.name_of(template),
        form=form,
        seen=seen,
        may_change=may_change,
    )
