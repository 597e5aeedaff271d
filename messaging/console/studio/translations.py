"""Translations of a template by XLIFF: out with the texts that changed, and back as a draft."""

from collections.abc import Mapping

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.studio import live, variants
from messaging.content import drafts
from messaging.content.files import xliff
from messaging.content.inputs import DRAFT
from messaging.models import Template, TemplateVersion
from rme.core import errors
from rme.core.http import edge
from rme.core.http.parsing import parse, refuse_nul
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

UPLOAD = edge.Upload(access.may_change_templates, xliff.BYTES_LIMIT)


class TranslationForm(forms.Form):
    """The file that a translator sends back."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        widget=forms.FileInput({"accept": ".xlf,.xliff,application/xliff+xml"}),
        max_length=200,
    )


def changed_texts(viewer: Viewer, template: Template) -> dict[str, str]:
    """Return the source's texts that changed since a translation was published; two queries.

    The source is the active version in the organization's language. Before the first translation
    was published, all of its texts count.
    """
    if template.language == viewer.organization.language:
        return {}
    sources = TemplateVersion.objects.filter(
        template__organization_id=viewer.organization_id,
        template__name=template.name,
        template__channel=template.channel,
        template__language=viewer.organization.language,
        activated_at__isnull=False,
    ).order_by("-activated_at")
    source = sources.filter(state=TemplateVersion.State.ACTIVE).first()
    if source is None:
        return {}
    active = template.versions.filter(state=TemplateVersion.State.ACTIVE).first()
    translated = sources.filter(activated_at__lte=active.activated_at).first() if active else None
    before: Mapping[str, object] = drafts.texts_of(translated)
    return xliff.changed(drafts.texts_of(source), before)


@access.page_for(Permission.SEE_TEMPLATES)
@require_GET
def export(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Return the changed texts as a file, or lead back to the page if nothing has changed."""
    template = live.template_of(request, viewer, name)
    texts = changed_texts(viewer, template)
    if not texts:
        messages.info(request, _("Nothing to translate."))
        return HttpResponseRedirect(variants.url_of(template))
    content = xliff.write(
        _original(template),
        (viewer.organization.language, template.language),
        texts,
        drafts.texts_of(live.shown_version(template)),
    )
    access.note(viewer, Action.EXPORTED, template, text="XLIFF")
    file_name = f"{template.name}.{template.channel.lower()}.{template.language}.xlf"
    return HttpResponse(
        content,
        content_type="application/xliff+xml",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )


@access.page_for(Permission.CHANGE_TEMPLATES)
@require_POST
def take_in(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Store the texts of a file as a draft, beside the texts that it doesn't have."""
    template = live.template_of(request, viewer, name)
    form = TranslationForm(request.POST, request.FILES)
    try:
        if not form.is_valid():
            raise errors.InvalidPayload.at("file", _("Choose a file."))
        translation = xliff.read(form.cleaned_data["file"].read(xliff.BYTES_LIMIT))
        row = _store(viewer, template, translation)
    except errors.InvalidPayload as error:
        messages.error(request, " ".join(each.message for each in error.details))
    except drafts.DraftChanged:
        messages.error(request, _("Somebody changed the draft just now. Upload the file again."))
    else:
        messages.success(request, _("Draft {number} is saved.").format(number=row.version))
    return HttpResponseRedirect(variants.url_of(template))


def _store(viewer: Viewer, template: Template, translation: xliff.Translation) -> TemplateVersion:
    """Store a translation as a draft. Raise InvalidPayload, DraftChanged."""
    if translation.original != _original(template) or translation.language != template.language:
        message = _("This file is for another template, language or channel: {original}.")
        original = f"{translation.original[:80]} {translation.language[:20]}"
        raise errors.InvalidPayload.at("file", message.format(original=original))
    texts = {
        field: text
        for field, text in translation.texts.items()
        if field in drafts.BY_CHANNEL[template.channel]
    }
    if not texts:
        raise errors.InvalidPayload.at("file", _("The file has no translated text."))
    version = live.shown_version(template)
    seen = drafts.Seen(version.version, version.revision) if version else drafts.Seen()
    refuse_nul(texts)
    parsed = parse(DRAFT, texts).model_dump()
    return live.store(viewer, template, {field: parsed[field] for field in texts}, seen)


def _original(template: Template) -> str:
    return f"{template.name}.{template.channel}"
