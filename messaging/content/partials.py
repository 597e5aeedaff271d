"""Partials: pieces that an organization's templates share. One in use is not broken or deleted.

They have drafts, reviews and versions as templates have. `Partial.text` is a copy of the active
version, which rendering reads; nothing else writes it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now
from django.utils.translation import gettext

from messaging.content import costly_steps, drafts, publishing, rendering, templates
from messaging.content.drafts import Seen
from messaging.models import Partial, PartialVersion, TemplateVersion
from rme.core import errors
from rme.core.errors import Detail
from rme.tenants.audit import Actor


# --- drafts -------------------------------------------------------------------------------------
def newest_drafts(partials: Collection[Partial]) -> dict[int, PartialVersion]:
    """Return the drafts of partials whose newest version is one, by the partial's id; one query."""
    rows = PartialVersion.objects.filter(partial__in=partials).order_by("partial", "-version")
    return {
        row.partial_id: row
        for row in rows.distinct("partial")
        if row.state == PartialVersion.State.DRAFT
    }


def save(partial: Partial, text: str, by: Actor, seen: Seen) -> PartialVersion:
    """Save a text as the draft that the person has seen, or as a new one. Raise DraftChanged."""
    with transaction.atomic():
        _keep_active([partial])
        return drafts.save_version(PartialVersion, partial, {"text": text}, by, seen)


def save_all(texts: Sequence[tuple[Partial, str]], by: Actor) -> list[PartialVersion]:
    """Save a text of each of some locked partials as a draft, as `drafts.save_all` does."""
    if not texts:
        return []
    _keep_active([partial for partial, _ in texts])
    new_texts = [(partial, {"text": text}) for partial, text in texts]
    return drafts.save_all(PartialVersion, new_texts, by)


def add_all(organization_id: str, names: Collection[str]) -> list[Partial]:
    """Add partials, which templates don't see until someone publishes a version.

    Raise IntegrityError if one exists, which ends a transaction.
    """
    rows = [
        Partial(organization_id=organization_id, name=name, is_published=False) for name in names
    ]
    return Partial.objects.bulk_create(rows) if rows else []


def delete(partial: Partial) -> None:
    """Delete a partial with its versions. Raise InvalidPayload if an active text needs it."""
    with transaction.atomic():
        if needing := problems(partial.organization_id, partial.name, None):
            details = [Detail("partial", each) for each in needing]
            raise errors.InvalidPayload(gettext("The partial is in use."), details=details)
        Partial.objects.filter(pk=partial.pk).delete()
    templates.forget_partials(partial.organization_id)


def _keep_active(partials: Sequence[Partial]) -> None:
    """Lock partials, and make versions of active texts that are not among the versions.

    The release before had no versions, and writes texts as long as it runs beside this one.
    """
    rows = list(
        Partial.objects.filter(pk__in=[each.pk for each in partials])
        .order_by("pk")
        .select_for_update()
    )
    versions = PartialVersion.objects.filter(partial__in=rows)
    active = dict(versions.filter(state=PartialVersion.State.ACTIVE).values_list("partial", "text"))
    unknown = [row for row in rows if row.is_published and active.get(row.pk) != row.text]
    if not unknown:
        return
    versions = versions.filter(partial__in=unknown)
    versions.filter(state=PartialVersion.State.ACTIVE).update(state=PartialVersion.State.ARCHIVED)
    numbers = dict(versions.values_list("partial").annotate(Max("version")))
    PartialVersion.objects.bulk_create(
        PartialVersion(
            partial=row,
            version=numbers.get(row.pk, 0) + 1,
            state=PartialVersion.State.ACTIVE,
            text=row.text,
            activated_at=row.updated_at,
        )
        for row in unknown
    )


# --- publishing ---------------------------------------------------------------------------------
def publish(version: PartialVersion, by: Actor) -> None:
    """Make a version active, which all templates with the partial use within two seconds.

    Raise InvalidPayload if it waits for a review or breaks an active text, and DraftChanged.
    """
    with transaction.atomic():
        partial = version.partial
        messages = problems(partial.organization_id, partial.name, version.text)
        if messages:
            raise errors.InvalidPayload(
                gettext("The partial can't be published."),
                details=[Detail("text", each) for each in messages],
            )
        activate_all(partial.organization_id, [version], by)


def activate_all(organization_id: str, versions: Sequence[PartialVersion], by: Actor) -> None:
    """Make checked versions of different partials of an organization active: all of them or none.

    Raise InvalidPayload if one waits for a review, and DraftChanged.
    """
    if not versions:
        return
    with transaction.atomic():
        drafts.lock(versions)
        for version in versions:
            publishing.require_review(version, by)
        partials = [version.partial for version in versions]
        _keep_active(partials)
        active = PartialVersion.objects.filter(
            partial__in=partials, state=PartialVersion.State.ACTIVE
        )
        active.update(state=PartialVersion.State.ARCHIVED)
        for version in versions:
            version.state = PartialVersion.State.ACTIVE
            version.activated_at = Now()
            version.partial.text = version.text
            version.partial.is_published = True
            version.partial.updated_at = Now()
        PartialVersion.objects.bulk_update(versions, ["state", "activated_at"])
        Partial.objects.bulk_update(partials, ["text", "is_published", "updated_at"])
    templates.forget_partials(organization_id)


# --- problems -----------------------------------------------------------------------------------
def problems(organization_id: str, name: str, text: str | None) -> list[str]:
    """Return the problems of giving a partial a new text, or of deleting it (None).

    Parses every active version of the organization: meant for the admin, not for API calls. If the
    caller has an open transaction, no other partial changes before it ends.
    """
    with transaction.atomic():
        partial_texts = templates.locked_partials(organization_id)
        partial_texts.pop(name, None)
        if text is not None:
            partial_texts[name] = text
            (syntax,) = costly_steps.check_partials(organization_id, [(text, partial_texts)])
            if syntax:
                return _messages("", syntax)
        return [message for _, message in _broken(organization_id, {name}, partial_texts)]


def broken(organization_id: str, names: Collection[str]) -> list[tuple[str, str]]:
    """Return the problems of texts that use partials as they are stored, each with the partial."""
    return list(_broken(organization_id, names, templates.locked_partials(organization_id)))


def _broken(
    organization_id: str, names: Collection[str], partial_texts: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the problems of all texts that use one of the partials, with its name."""
    users: list[tuple[str, str]] = []
    """The names of the partials that use one of them, each with its name."""
    for user, text in sorted(partial_texts.items()):
        used = sorted(rendering.used_partials({"text": text}, partial_texts) & {*names})
        if used and user not in names:
            users.append((user, used[0]))
    checked_partials = costly_steps.check_partials(
        organization_id, [(partial_texts[user], partial_texts) for user, _ in users]
    )
    for (user, name), problems in zip(users, checked_partials, strict=True):
        for message in _messages(f"partial {user}: ", problems):
            yield name, message
    rows = TemplateVersion.objects.filter(
        template__organization_id=organization_id, state=TemplateVersion.State.ACTIVE
    ).select_related("template")
    versions: list[tuple[str, str, Mapping[str, object]]] = []
    for row in rows.order_by("pk").iterator():
        texts = templates.source_texts(row)
        if used := sorted(rendering.used_partials(texts, partial_texts) & {*names}):
            versions.append((str(row), used[0], texts))
    checked = costly_steps.check_versions(
        organization_id, [(texts, partial_texts) for _, _, texts in versions]
    )
    for (owner, name, _), version in zip(versions, checked, strict=True):
        for message in _messages(f"{owner}: ", version.problems):
            yield name, message


def _messages(prefix: str, problems: Sequence[rendering.TemplateProblem]) -> list[str]:
    return [f"{prefix}{each.field}, line {each.line}: {each.message}" for each in problems]
