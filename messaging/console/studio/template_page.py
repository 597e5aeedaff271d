"""A template's page: its variants as tabs, the editor, the rendering, and the history."""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.studio import actions, live, translations, variants, versions, written
from messaging.console.studio.studio_forms import AnotherForm, PublishForm, TemplateCategoryForm
from messaging.console.studio.variants import Variant
from messaging.console.studio.wording import FIELD_LABELS, LANGUAGES, SCRIPT_WORDS
from messaging.content import drafts, publishing
from messaging.domain.channels import Channel
from messaging.models import Template, TemplateVersion
from rme.tenants.access.roles import Permission
from rme.tenants.organizations import languages

ONE_LINE = ("subject", "title", "image", "link", "badge")
FORMS = [
    ("desktop", gettext_lazy("Desktop")),
    ("phone", gettext_lazy("Phone")),
    ("dark", gettext_lazy("Dark")),
    ("text", gettext_lazy("Plain text")),
]


@access.page_for(Permission.SEE_TEMPLATES)
def show(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Return a template's page; a POST writes: it saves, copies, tests, or asks for a review."""
    if request.method != "POST":
        return _page(request, viewer, name)
    viewer.require(Permission.CHANGE_TEMPLATES)
    return _act(request, viewer, name, actions.WRITING)


@access.page_for(Permission.SEE_TEMPLATES)
@require_POST
def publish(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Do what changes the text that is sent: publish, roll back, approve, archive."""
    viewer.require(Permission.PUBLISH_TEMPLATES)
    return _act(request, viewer, name, actions.PUBLISHING)


def _act(
    request: HttpRequest, viewer: Viewer, name: str, acts: actions.Acts[Template]
) -> HttpResponseBase:
    template = live.template_of(request, viewer, name)
    url = variants.url_of(template)

    def page(problems: Sequence[str]) -> HttpResponseBase:
        return _page(request, viewer, name, problems)

    return actions.carry_out(request, viewer, template, acts, url=url, page=page)


def _page(
    request: HttpRequest, viewer: Viewer, name: str, problems: Sequence[str] = ()
) -> HttpResponseBase:
    template = live.template_of(request, viewer, name)
    every = variants.find(viewer, [name])[name]
    variant = next(each for each in every if each.id == template.pk)
    version = live.shown_version(template, written.version_number(request.GET.get("version", "")))
    if version is None and request.GET.get("version"):
        raise Http404
    may_change = viewer.may(Permission.CHANGE_TEMPLATES)
    history = versions.history(template)
    return access.show(
        request,
        viewer,
        "studio/template",
        name,
        variant=variant,
        variants=every,
        version=version,
        is_draft=version is not None and version.state == TemplateVersion.State.DRAFT,
        problems=problems,
        may_change=may_change,
        may_publish=viewer.may(Permission.PUBLISH_TEMPLATES),
        history=history,
        was_active=any(line.row.state != TemplateVersion.State.DRAFT for line in history),
        may_send=viewer.may(Permission.OPERATE),
        fields=_fields(template, version, request),
        rows=written.schema_rows(version.variables if version else {}),
        kinds=written.KIND_LABELS.items(),
        data=version.data.items() if version and template.channel == "PUSH" else None,
        parts=_parts(template, version),
        new_languages=_new_languages(viewer, template, every),
        changed_texts=[FIELD_LABELS[each] for each in translations.changed_texts(viewer, template)],
        is_source=template.language == viewer.organization.language,
        another=AnotherForm(viewer, template),
        category_form=TemplateCategoryForm(viewer, template),
        publish_form=PublishForm(),
        review=_review(viewer, every, version),
        forms_of_rendering=FORMS,
        studio=_studio(viewer, name, template, version, may_change=may_change),
    )


def _fields(
    template: Template, version: TemplateVersion | None, request: HttpRequest
) -> list[dict[str, Any]]:
    """Return the texts of the form: as they were sent, if they were, else as they are stored."""
    texts = drafts.texts_of(version)
    is_sent = request.method == "POST" and request.POST.get("do") == "save"
    return [
        {
            "name": name,
            "label": FIELD_LABELS[name],
            "text": request.POST.get(name, "") if is_sent else _text(texts[name]),
            "is_line": name in ONE_LINE,
            "language": LANGUAGES.get(name, ""),
        }
        for name in drafts.BY_CHANNEL[template.channel]
        if name in FIELD_LABELS
    ]


def _parts(template: Template, version: TemplateVersion | None) -> list[dict[str, object]]:
    """Return the parts of an email by their tabs: first those that are used."""
    if template.channel != Channel.EMAIL:
        return []
    texts = drafts.texts_of(version)
    main = "mjml" if texts["mjml"] and not texts["html"] else "html"
    used = [name for name in ("html", "mjml") if texts[name] or name == main] + ["text"]
    unused = [name for name in ("html", "mjml") if name not in used]
    return [
        {"name": name, "label": FIELD_LABELS[name], "is_used": name in used}
        for name in (*used, *unused)
    ]


def _new_languages(
    viewer: Viewer, template: Template, every: Sequence[Variant]
) -> list[tuple[str, str]]:
    """Return the languages that this template lacks: those that the organization has chosen, or
    else those of its templates, by one query.
    """
    there = {each.language for each in every if each.channel == template.channel}
    chosen: Iterable[str] = viewer.organization.languages
    if not chosen:
        rows = Template.objects.filter(organization_id=viewer.organization_id, archived_at=None)
        chosen = rows.values_list("language", flat=True).distinct()
    codes = {viewer.organization.language, *chosen} - there
    return sorted(((code, languages.name(code)) for code in codes), key=itemgetter(1))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _review(
    viewer: Viewer, every: Sequence[Variant], version: TemplateVersion | None
) -> dict[str, object]:
    """Return what the page says about the review of the version, and of all variants."""
    unapproved = [each for each in every if each.review_by and not each.approved_by]
    return {
        "is_required": publishing.review_is_required(viewer.organization_id),
        "is_free": version is not None and publishing.is_free(version, viewer.actor),
        "may_review": version is not None and publishing.may_review(version, viewer.actor),
        "waiting": unapproved,
        "drafts": [each for each in every if each.draft],
        "seen": ",".join(each.seen for each in every if each.draft),
    }


def _studio(
    viewer: Viewer,
    name: str,
    template: Template,
    version: TemplateVersion | None,
    *,
    may_change: bool,
) -> dict[str, object]:
    """Return what the page's script needs to know."""
    args = [viewer.organization_id, name]
    is_draft = version is not None and version.state == TemplateVersion.State.DRAFT
    return {
        "preview": reverse("console:template_preview", args=args),
        "draft": reverse("console:template_draft", args=args) if may_change else "",
        "contacts": reverse("console:sample_contacts", args=args[:1])
        if viewer.may(Permission.SEE_MESSAGES)
        else "",
        "channel": template.channel,
        "isDraft": is_draft,
        "completion": versions.completion(viewer.organization_id),
        "words": SCRIPT_WORDS,
    }
