"""Partials: pieces that an organization's templates share. One in use is not broken or deleted."""

from collections.abc import Collection, Iterator, Mapping

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
        return [message for _, message in _broken(organization_id, {name}, known)]


def broken(organization_id: str, names: Collection[str]) -> list[tuple[str, str]]:
    """Return the problems of texts that use partials as they are stored, each with the partial."""
    return list(_broken(organization_id, names, templates.locked_partials(organization_id)))


def _broken(
    organization_id: str, names: Collection[str], known: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the problems of all texts that use one of the partials, with its name."""
    for other, text in sorted(known.items()):
        used = sorted(rendering.used_partials({"text": text}, known) & {*names})
        if used and other not in names:
            for message in _messages(f"partial {other}: ", rendering.check_partial(text, known)):
                yield used[0], message
    rows = TemplateVersion.objects.filter(
        template__organization_id=organization_id, state=TemplateVersion.State.ACTIVE
    ).select_related("template")
    for row in rows.order_by("pk").iterator():
        texts = templates.source_texts(row)
        if used := sorted(rendering.used_partials(texts, known) & {*names}):
            for message in _messages(f"{row}: ", rendering.check(texts, known)):
                yield used[0], message


def _messages(where: str, problems: list[rendering.TemplateProblem]) -> list[str]:
    return [f"{where}{each.field}, line {each.line}: {each.message}" for each in problems]
