"""Drafts of templates: saved as they are typed, by several people, without overwriting anybody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now

from messaging.content import templates
from messaging.models import Template, TemplateVersion
from rme.core import errors
from rme.tenants import languages
from rme.tenants.audit import Actor

FIELDS = (*templates.TEXTS, "variables")
"""The fields of a version that people write."""
BY_CHANNEL = {
    "EMAIL": ("subject", "html", "mjml", "text"),
    "SMS": ("text",),
    "PUSH": ("title", "body", "image", "link", "badge", "data"),
}
"""The texts of a version, by channel."""
_UNREVIEWED: Mapping[str, object] = {
    "review_by": "",
    "approved_by": "",
    "publish_at": None,
    "publish_by": "",
    "publish_by_id": None,
    "publish_problem": "",
}
"""A draft that was changed: neither its review nor its time of publishing counts any more."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The version that a person has before them. `anew`: make a draft beside what others wrote."""

    version: int = 0
    revision: int = 0
    anew: bool = False


class DraftChanged(Exception):
    """Another person has changed what a person was about to save. `row`: as it is now, if it is."""

    def __init__(self, row: TemplateVersion | None) -> None:
        self.row = row
        super().__init__(row)


def texts_of(version: TemplateVersion | None) -> dict[str, object]:
    """Return what people have written in a version; nothing of none."""
    row = version or TemplateVersion()
    return {name: getattr(row, name) for name in FIELDS}


def save(template: Template, texts: Mapping[str, object], by: Actor, seen: Seen) -> TemplateVersion:
    """Save the texts as the draft that the person has seen, or else as a new one.

    What is not among the texts stays as it was. A change ends the draft's review and its time of
    publishing. Raise DraftChanged if the person has not seen what would be overwritten.
    """
    with transaction.atomic():
        Template.objects.select_for_update().get(pk=template.pk)
        row = template.versions.filter(version=seen.version).first()
        newest = template.versions.order_by("-version").first()
        is_draft = row is not None and row.state == TemplateVersion.State.DRAFT
        if seen.anew or not is_draft:
            unseen = newest is not None and newest.version > seen.version
            if not seen.anew and unseen and newest and newest.state == TemplateVersion.State.DRAFT:
                raise DraftChanged(newest)
            return _added(template, {**texts_of(row), **texts}, by)
        assert row is not None  # it is a draft
        if row.revision != seen.revision:
            raise DraftChanged(row)
        if all(getattr(row, name) == value for name, value in texts.items()):
            return row
        return _changed(row, texts, by)


def _added(template: Template, texts: Mapping[str, object], by: Actor) -> TemplateVersion:
    row = templates.add_draft(template, {**texts, **_authorship(by, [])})
    row.refresh_from_db()
    row.template = template
    return row


def _changed(row: TemplateVersion, texts: Mapping[str, object], by: Actor) -> TemplateVersion:
    TemplateVersion.objects.filter(pk=row.pk).update(
        **texts,
        **_authorship(by, row.authors),
        **_UNREVIEWED,
        revision=F("revision") + 1,
    )
    template = row.template
    row.refresh_from_db()
    row.template = template
    return row


def save_all(
    texts: Sequence[tuple[Template, Mapping[str, object]]], by: Actor
) -> list[TemplateVersion]:
    """Save a text of each of some locked templates as a draft; return the drafts in this order.

    The newest version is changed if it is a draft that the same person or program saved last;
    otherwise the text is a new draft, so no other person's is overwritten. The number of statements
    does not grow with the templates.
    """
    owners = {template.pk: template for template, _ in texts}
    rows = TemplateVersion.objects.filter(template__in=owners)
    newest = {
        row.template_id: row for row in rows.order_by("template", "-version").distinct("template")
    }
    changed: list[TemplateVersion] = []
    added: list[TemplateVersion] = []
    found: list[TemplateVersion] = []
    for template, written in texts:
        row = newest.get(template.pk)
        is_own = row is not None and row.state == TemplateVersion.State.DRAFT
        if row is not None and is_own and row.edited_by == by.name[:150]:
            changed.append(row)
        else:
            row = TemplateVersion(version=row.version + 1 if row else 1, revision=0)
            added.append(row)
        row.template = template
        for name, value in {**written, **_UNREVIEWED, **_authorship(by, row.authors)}.items():
            setattr(row, name, value)
        row.revision += 1
        found.append(row)
    TemplateVersion.objects.bulk_create(added)
    names = [*FIELDS, *_UNREVIEWED, "edited_by", "edited_at", "authors", "revision"]
    TemplateVersion.objects.bulk_update(changed, names)
    return found


def _authorship(by: Actor, authors: list[int]) -> dict[str, object]:
    own = [] if by.user_id is None or by.user_id in authors else [by.user_id]
    return {"edited_by": by.name[:150], "edited_at": Now(), "authors": [*authors, *own]}


def add_template(
    new: Template, by: Actor, texts: Mapping[str, object] | None = None
) -> TemplateVersion:
    """Store a template, which is new, with its first draft.

    Raise InvalidPayload if there is no such language, or if the template exists.
    """
    if not languages.is_language(new.language):
        raise errors.InvalidPayload.at("language", "There is no such language or country.")
    try:
        with transaction.atomic():
            new.save(force_insert=True)
            return _added(new, texts or {}, by)
    except IntegrityError:
        message = f"{new.name} exists already in {new.language} for {new.channel}."
        raise errors.InvalidPayload.at("language", message) from None


def discard(version: TemplateVersion, seen: Seen) -> None:
    """Delete a draft as the person has seen it. Raise DraftChanged."""
    rows = TemplateVersion.objects.filter(
        pk=version.pk, state=TemplateVersion.State.DRAFT, revision=seen.revision
    )
    if not rows.delete()[0]:
        raise DraftChanged(TemplateVersion.objects.filter(pk=version.pk).first())
