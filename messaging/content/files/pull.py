"""An organization's templates as files: the newest draft of each, or else the active version."""

from collections.abc import Iterator

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from messaging.content import partials
from messaging.content.files import texts
from messaging.content.files.file_types import SourceFile
from messaging.models import Partial, Template, TemplateVersion


def pull(organization_id: str) -> Iterator[SourceFile]:
    """Yield the files, by path; three queries. Raise FilesRefused for a name that is no path.

    Templates without a draft and an active version are left out: nothing is sent by them.
    """
    rows_of_partials = list(
        Partial.objects.filter(organization_id=organization_id).order_by("name")
    )
    newest = partials.newest_drafts(rows_of_partials)
    for partial in rows_of_partials:
        text = newest[partial.pk].text if partial.pk in newest else partial.text
        yield texts.write_partial(partial.name, text)
    previous: TemplateVersion | None = None
    order = ("template__name", "template__language", "template__channel", "version")
    rows = current(Template.objects.filter(organization_id=organization_id)).order_by(*order)
    for row in rows.iterator(chunk_size=100):
        if previous is not None and previous.template_id != row.template_id:
            yield texts.write(previous)
        previous = row
    if previous is not None:
        yield texts.write(previous)


def current(templates: "QuerySet[Template]") -> "QuerySet[TemplateVersion]":
    """Return the active version and the newest one, if that is a draft, of some templates."""
    versions = TemplateVersion.objects.filter(template=OuterRef("template"))
    newest = versions.order_by("-version").values("version")[:1]
    draft = Q(state=TemplateVersion.State.DRAFT, version=F("newest"))
    return (
        TemplateVersion.objects.filter(template__in=templates)
        .annotate(newest=Subquery(newest))
        .filter(draft | Q(state=TemplateVersion.State.ACTIVE))
        .select_related("template")
    )
