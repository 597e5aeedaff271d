"""The list of templates, by name, with the state of each language and channel."""

from collections.abc import Mapping
from itertools import chain, count
from urllib.parse import urlencode

from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.studio import layouts, variants
from messaging.console.studio.layouts import Layout
from messaging.console.studio.studio_forms import NewTemplateForm, TemplateFilterForm
from messaging.content import drafts
from messaging.domain.channels import Channel
from messaging.domain.policy import TRANSACTIONAL
from messaging.models import Template
from rme.core import errors
from rme.core.db import locks
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

SHOWN = 50


@access.page_for(Permission.SEE_TEMPLATES)
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the list; a POST adds a template and leads to its page."""
    form = NewTemplateForm(viewer)
    if request.method == "POST":
        viewer.require(Permission.CHANGE_TEMPLATES)
        if layout := layouts.BY_NAME.get(request.POST.get("layout", "")):
            return HttpResponseRedirect(variants.url_of(_from_layout(viewer, layout)))
        form = NewTemplateForm(viewer, request.POST)
        if form.is_valid() and (template := _add(viewer, form)):
            return HttpResponseRedirect(variants.url_of(template))
    term = request.GET.get("q", "").replace("\0", "").strip()[:200]
    state = request.GET.get("show", "")
    filters = TemplateFilterForm(viewer, request.GET)
    chosen = {name: value for name, value in filters.cleaned_data.items() if value}
    names = _names(viewer, term, state, chosen, request.GET.get("after", "").replace("\0", ""))
    following = {"q": term, "show": state, **chosen, "after": names[SHOWN - 1 :][:1]}
    variants_by_name = variants.find(viewer, names[:SHOWN])
    return access.show(
        request,
        viewer,
        "studio/list",
        _("Templates"),
        templates=variants_by_name.items(),
        following=urlencode(following, doseq=True) if len(names) > SHOWN else "",
        is_filtered=bool(term or state or chosen),
        filters=filters,
        term=term,
        shown=state,
        form=form,
        layouts=layouts.LAYOUTS,
        may_change=viewer.may(Permission.CHANGE_TEMPLATES),
    )


def _names(
    viewer: Viewer, term: str, state: str, chosen: Mapping[str, str], cursor: str
) -> list[str]:
    """Return the names of a page of templates, and one more if there are more; one query."""
    rows = Template.objects.filter(organization_id=viewer.organization_id, **chosen)
    if state == "review":
        rows = rows.filter(variants.waiting())
    else:
        rows = rows.filter(archived_at__isnull=state != "archived")
    if term:
        rows = rows.filter(name__icontains=term)
    if cursor:
        rows = rows.filter(name__gt=cursor)
    names = rows.order_by("name").values_list("name", flat=True).distinct()
    return list(names[: SHOWN + 1])


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
