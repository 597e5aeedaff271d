"""Partials: pieces that an organization's templates share. One in use is not broken or deleted."""

from collections.abc import Iterator, Mapping

from django.db import transaction

from messaging.content import rendering, templates
from messaging.models import TemplateVersion


def problems(organization_id: str, name: str, text: str | None) -> list[str]:
    """Return the problems of giving a partial a new text, or of deleting it (None).

    Parses every active version of the organization: meant for the admin, not for API calls. If the
    caller has an open transaction, no other partial changes before it ends.
    """
    with transaction.atomic():
        known = templates.locked_partials(organization_id)
        known.pop(name, None)
        if text is not None:
            known[name] = text
            if own := rendering.check_partial(text, known):
                return _messages("", own)
        return list(_broken(organization_id, name, known))


def _broken(organization_id: str, name: str, known: Mapping[str, str]) -> Iterator[str]:
    """Yield the problems of all texts that use the partial."""
    for other, text in sorted(known.items()):
        if other != name and name in rendering.used_partials({"text": text}, known):
            yield from _messages(f"partial {other}: ", rendering.check_partial(text, known))
    rows = TemplateVersion.objects.filter(
        template__organization_id=organization_id, state=TemplateVersion.State.ACTIVE
    ).select_related("template")
    for row in rows.order_by("pk").iterator():
        texts = templates.source_texts(row)
        if name in rendering.used_partials(texts, known):
            yield from _messages(f"{row}: ", rendering.check(texts, known))


def _messages(where: str, problems: list[rendering.TemplateProblem]) -> list[str]:
    return [f"{where}{each.field}, line {each.line}: {each.message}" for each in problems]
