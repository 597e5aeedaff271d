"""The list of templates by name, each with its languages and channels, and adding one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, count

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.filters import list_page
from messaging.console.studio import layouts, variants
from messaging.console.studio.layouts import Layout
from messaging.console.studio.studio_forms import NewTemplateForm, TemplateFilterForm
from messaging.console.studio.variants import Variant
from messaging.content import drafts
from messaging.domain.channels import Channel
from messaging.domain.policy import TRANSACTIONAL
from messaging.models import Template
from rme.components.tables import Cell, Column, Target
from rme.core import errors
from rme.core.db import locks
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action
from rme.tenants.organizations import languages

PAGE = 50


@dataclass(frozen=True, slots=True)
class TemplateLine:
    """A template with its variants, those of the default language first."""

    name: str
    variants: Sequence[Variant]

    @property
    def category(self) -> str:
        return wording.category(self.variants[0].category)

    @property
    def language_names(self) -> str:
        return ", ".join(dict.fromkeys(languages.name(each.language) for each in self.variants))

    @property
    def channel_names(self) -> str:
        return ", ".join(dict.fromkeys(wording.channel(each.channel) for each in self.variants))

    @property
    def published_at(self) -> datetime | None:
        """Return when a variant was last published."""
        moments = [each.activated_at for each in self.variants if each.activated_at]
        return max(moments, default=None)

    @property
    def authors(self) -> str:
        """Return who wrote its drafts last."""
        return ", ".join(dict.fromkeys(each.edited_by for each in self.variants if each.edited_by))

    @property
    def states(self) -> list[tuple[str, str]]:
        """Return how many variants are active, and what is under way, each with a colour."""
        states = [self._activity()]
        drafts_open = [each for each in self.variants if each.draft]
        if any(each.problem for each in drafts_open):
            states.append((gettext("Could not be published"), "bad"))
        if any(each.publish_at and not each.problem for each in drafts_open):
            states.append((gettext("Will be published"), "info"))
        if any(each.review_by and not each.approved_by for each in drafts_open):
            states.append((gettext("Waiting for review"), "warn"))
        if any(each.approved_by and not each.publish_at for each in drafts_open):
            states.append((gettext("Approved"), "good"))
        if drafts_open and len(states) == 1:
            states.append((gettext("Draft"), "info"))
        if any(each.lags for each in self.variants):
            states.append((gettext("Translation outdated"), "warn"))
        return states

    def _activity(self) -> tuple[str, str]:
        usable = [each for each in self.variants if not each.is_archived]
        active = sum(1 for each in usable if each.active)
        if not usable:
            return gettext("Archived"), "muted"
        if not active:
            return gettext("Nothing is active"), "warn"
        if active == len(usable):
            return gettext("Active"), "good"
        text = ngettext(
            "%(active)s of %(count)s is active", "%(active)s of %(count)s are active", active
        )
        return text % {"active": active, "count": len(usable)}, "warn"


def _state(line: TemplateLine) -> Cell:
    (words, colour), *further = line.states
    return Cell(words, colour=colour, pills=further)


COLUMNS: list[Column[TemplateLine]] = [
    Column("template", _("Template"), lambda line: Cell(line.name), "wide"),
    Column("state", _("State"), _state, "wide"),
    Column("languages", _("Languages"), lambda line: Cell(line.language_names), "wide"),
    Column("channels", _("Channels"), lambda line: Cell(line.channel_names)),
    Column("category", _("Category"), lambda line: Cell(line.category)),
    Column("author", _("Draft by"), lambda line: Cell(line.authors), is_shown=False),
    Column("published", _("Published"), lambda line: Cell(at=line.published_at), "small"),
]


def _target(viewer: Viewer, line: TemplateLine) -> Target:
    peek_url = reverse("console:template_peek", args=[viewer.organization_id, line.name])
    return Target(line.variants[0].url, line.name, peek_url=peek_url)


@access.page_for(Permission.SEE_TEMPLATES)
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of the templates, by name."""
    form = TemplateFilterForm(viewer, request.GET)
    names = _names(viewer, form.valid_values(), request.GET.get("after", "").replace("\0", ""))
    lines = [TemplateLine(*each) for each in variants.find(viewer, names[:PAGE]).items()]
    return list_page.show(
        request,
        viewer,
        "studio/list",
        gettext("Templates"),
        columns=COLUMNS,
        lines=lines,
        target=partial(_target, viewer),
        form=form,
        following=names[PAGE - 1] if len(names) > PAGE else None,
        layouts=layouts.LAYOUTS,
        may_change=viewer.may(Permission.CHANGE_TEMPLATES),
    )


def _names(viewer: Viewer, filters: Mapping[str, str], cursor: str) -> list[str]:
    """Return the names of a page of templates, and one more if there are more; one query."""
    columns = {name: filters[name] for name in ("channel", "category") if name in filters}
    rows = Template.objects.filter(organization_id=viewer.organization_id, **columns)
    state = filters.get("state")
    if state == TemplateFilterForm.REVIEW:
        rows = rows.filter(variants.waiting())
    else:
        rows = rows.filter(archived_at__isnull=state != TemplateFilterForm.ARCHIVED)
    if "q" in filters:
        rows = rows.filter(name__icontains=filters["q"])
    if cursor:
        rows = rows.filter(name__gt=cursor)
    names = rows.order_by("name").values_list("name", flat=True).distinct()
    return list(names[: PAGE + 1])


@access.page_for(Permission.SEE_TEMPLATES)
@require_GET
def show_peek(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Return what the panel beside the list shows of a template."""
    found = variants.find(viewer, [name])
    if not found:
        raise Http404
    line = TemplateLine(name, found[name])
    context = {"organization": viewer.organization, "line": line}
    return render(request, "admin/console/studio/peek.html", context)


@access.page_for(Permission.CHANGE_TEMPLATES)
def new(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the form of a new template and the layouts; a POST adds one and leads to its page."""
    form = NewTemplateForm(viewer)
    if request.method == "POST":
        if layout := layouts.BY_NAME.get(request.POST.get("layout", "")):
            return HttpResponseRedirect(variants.url_of(_from_layout(viewer, layout)))
        form = NewTemplateForm(viewer, request.POST)
        if form.is_valid() and (template := _add(viewer, form)):
            return HttpResponseRedirect(variants.url_of(template))
    return access.show(
        request,
        viewer,
        "studio/new",
        gettext("New template"),
        form=form,
        layouts=layouts.LAYOUTS,
    )


def _add(viewer: Viewer, form: NewTemplateForm) -> Template | None:
    """Add the template with an empty draft; None if it exists, with the form's error."""
    new = Template(organization_id=viewer.organization_id, **form.cleaned_data)
    try:
        drafts.add_template(new, viewer.actor)
    except errors.InvalidPayload as error:
        for detail in error.details:
            form.add_error("name" if "exists" in detail.message else detail.field, detail.message)
        return None
    access.note(viewer, Action.ADDED, new)
    return new


def _from_layout(viewer: Viewer, layout: Layout) -> Template:
    """Add an email with a layout's texts as its draft, by its name or the next free one."""
    with transaction.atomic():
        locks.until_commit([f"layouts {viewer.organization_id}"])  # two may want the same name
        new = Template(
            organization_id=viewer.organization_id,
            name=_free_name(viewer.organization_id, layout.name),
            language=viewer.organization.language,
            channel=Channel.EMAIL,
            category=TRANSACTIONAL,
        )
        drafts.add_template(new, viewer.actor, layout.fields)
        access.note(viewer, Action.ADDED, new, text=f"from the layout {layout.title}")
    return new


def _free_name(organization_id: str, stem: str) -> str:
    """Return a name, or the name with the next number that no template has; one query."""
    names = Template.objects.filter(organization_id=organization_id, name__startswith=stem)
    taken = set(names.values_list("name", flat=True))
    numbered = (f"{stem}-{number}" for number in count(2))
    return next(each for each in chain([stem], numbered) if each not in taken)
