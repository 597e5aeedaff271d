"""Partials: pieces that an organization's templates share. None in use is broken or taken away."""

from collections.abc import Iterator, Mapping

from django.db import transaction

from messaging.content import rendering, templates
from messaging.models import TemplateVersion


def problems(organization_id: str, name: str, text: str | None) -> list[str]:
    """Say what speaks against a partial's new text, or against deleting it (None).

    Reads every active version of the organization: for people, not for programs. Where the caller
    has a transaction open, no other partial changes before it ends.
    """
    with transaction.atomic():
        known = templates.locked_partials(organization_id)
        known.pop(name, None)
        if text is not None:
            known[name] = text
            if wrong := rendering.check_partial(text, known):
                return _told("", wrong)
        return list(_broken(organization_id, name, known))


def _broken(organization_id: str, name: str, known: Mapping[str, str]) -> Iterator[str]:
    """Go through what uses the partial, and say what would be wrong with it."""
    for other, text in sorted(known.items()):
        if other != name and name in rendering.used_partials({"text": text}, known):
            yield from _told(f"partial {other}: ", rendering.check_partial(text, known))
    rows = TemplateVersion.objects.filter(
        template__organization_id=organization_id, state=TemplateVersion.State.ACTIVE
    ).select_related("template")
    for row in rows.order_by("pk").iterator():
        texts = templates.source_texts(row)
        if name in rendering.used_partials(texts, known):
            yield from _told(f"{row}: ", rendering.check(texts, known))


def _told(what: str, found: list[rendering.TemplateProblem]) -> list[str]:
    return [f"{what}{p.field}, line {p.line}: {p.message}" for p in found]
