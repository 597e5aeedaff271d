"""Drafts of templates and partials, saved as they are typed, without overwriting anybody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_noop

from messaging.models import Partial, Template, TemplateVersion, Version
from rme.core import errors
from rme.tenants.audit import Actor
from rme.tenants.organizations import languages

FIELDS = TemplateVersion.TEXTS
"""The fields of a version that people write."""
Owner = Template | Partial
USED = gettext_noop(
    "A version is or was active, and messages refer to it. Archive the template, or add a pause "
    "that names it."
)
"""Why a template can't be deleted, and what to do instead."""
AnyVersion = TypeVar("AnyVersion", bound=Version)
BY_CHANNEL = {
    "EMAIL": ("subject", "html", "mjml", "text"),
    "SMS": ("text",),
    "PUSH": ("title", "body", "image", "link", "badge", "data"),
}
"""The texts of a version, by channel."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The version that a person has before them. `anew`: make a draft beside what others wrote."""

    version: int = 0
    revision: int = 0
    anew: bool = False


class DraftChanged(Exception):
    """Another person has changed what a person was about to save. `row`: as it is now, if it is."""

    def __init__(self, row: Version | None) -> None:
        self.row = row
        super().__init__(row)


def texts_of(version: TemplateVersion | None) -> dict[str, object]:
    """Return the texts that people wrote in a version; without a version they are empty."""
    row = version or TemplateVersion()
    return {name: getattr(row, name) for name in FIELDS}


def save(template: Template, texts: Mapping[str, object], by: Actor, seen: Seen) -> TemplateVersion:
    """Save the texts as the draft of a template that the person has seen, or else as a new one.

    What is not among the texts stays as it was. A change ends the draft's review and its time of
    publishing. Raise DraftChanged if the person has not seen what would be overwritten.
    """
    return save_version(TemplateVersion, template, texts, by, seen)


def save_version(
    model: type[AnyVersion], owner: Owner, texts: Mapping[str, object], by: Actor, seen: Seen
) -> AnyVersion:
    """Save a draft of a template or a partial, as `save` does."""
    with transaction.atomic():
        type(owner)._default_manager.select_for_update().get(pk=owner.pk)
        versions = model._default_manager.filter(**{model.OWNER: owner})
        row = versions.filter(version=seen.version).first()
        newest = versions.order_by("-version").first()
        is_draft = row is not None and row.state == Version.State.DRAFT
        if seen.anew or not is_draft:
            unseen = newest is not None and newest.version > seen.version
            if not seen.anew and unseen and newest and newest.state == Version.State.DRAFT:
                raise DraftChanged(newest)
            old_texts = {name: getattr(row or model(), name) for name in model.TEXTS}
            number = newest.version + 1 if newest else 1
            return _added(model, owner, number, {**old_texts, **texts}, by)
        assert row is not None  # it is a draft
        if row.revision != seen.revision:
            raise DraftChanged(row)
        setattr(row, model.OWNER, owner)
        if all(getattr(row, name) == value for name, value in texts.items()):
            return row
        return _changed(row, texts, by)


def _added(
    model: type[AnyVersion], owner: Owner, number: int, texts: Mapping[str, object], by: Actor
) -> AnyVersion:
    row = model._default_manager.create(
        version=number, **{model.OWNER: owner}, **texts, **_authorship(by, [])
    )
    return _reread(row, owner)


def _changed(row: AnyVersion, texts: Mapping[str, object], by: Actor) -> AnyVersion:
    owner = getattr(row, row.OWNER)
    type(row)._default_manager.filter(pk=row.pk).update(
        **texts,
        **_authorship(by, row.authors),
        **row.UNREVIEWED,
        revision=F("revision") + 1,
    )
    return _reread(row, owner)


def _reread(row: AnyVersion, owner: Owner) -> AnyVersion:
    row.refresh_from_db()
    setattr(row, row.OWNER, owner)
    return row


def save_all(
    model: type[AnyVersion], texts: Sequence[tuple[Owner, Mapping[str, object]]], by: Actor
) -> list[AnyVersion]:
    """Save a text of each of some locked owners as a draft; return the drafts in this order.

    The newest version is changed if it is a draft that the same person or program saved last;
    otherwise the text is a new draft, so no other person's is overwritten. The number of statements
    does not grow with the owners.
    """
    key = f"{model.OWNER}_id"
    rows = model._default_manager.filter(**{f"{model.OWNER}__in": [owner.pk for owner, _ in texts]})
    newest = {
        getattr(row, key): row for row in rows.order_by(model.OWNER, "-version").distinct(key)
    }
    changed: list[AnyVersion] = []
    added: list[AnyVersion] = []
    saved: list[AnyVersion] = []
    for owner, new_texts in texts:
        row = newest.get(owner.pk)
        is_draft = row is not None and row.state == Version.State.DRAFT
        if row is not None and is_draft and row.edited_by == by.name[:150]:
            changed.append(row)
        else:
            row = model(version=row.version + 1 if row else 1, revision=0)
            added.append(row)
        setattr(row, model.OWNER, owner)
        for name, value in {
            **new_texts,
            **model.UNREVIEWED,
            **_authorship(by, row.authors),
        }.items():
            setattr(row, name, value)
        row.revision += 1
        saved.append(row)
    model._default_manager.bulk_create(added)
    names = [*model.TEXTS, *model.UNREVIEWED, "edited_by", "edited_at", "authors", "revision"]
    model._default_manager.bulk_update(changed, names)
    return saved


def lock(versions: Sequence[Version]) -> None:
    """Lock versions until the transaction ends. Raise DraftChanged if one isn't as it was read.

    So a text that changes while its reviewer decides is not approved or published.
    """
    for model in {type(each) for each in versions}:
        read = {each.pk: each for each in versions if type(each) is model}
        owner_ids = {getattr(each, f"{model.OWNER}_id") for each in read.values()}
        owners = model._meta.get_field(model.OWNER).related_model
        assert isinstance(owners, type)  # the model of a foreign key that is set up
        list(owners._default_manager.filter(pk__in=owner_ids).order_by("pk").select_for_update())
        stored_rows = {row.pk: row for row in model._default_manager.filter(pk__in=read)}
        for key, row in read.items():
            if key not in stored_rows or stored_rows[key].revision != row.revision:
                raise DraftChanged(stored_rows.get(key))


def _authorship(by: Actor, authors: list[int]) -> dict[str, object]:
    new = [] if by.user_id is None or by.user_id in authors else [by.user_id]
    return {"edited_by": by.name[:150], "edited_at": Now(), "authors": [*authors, *new]}


def add_template(
    new: Template, by: Actor, texts: Mapping[str, object] | None = None
) -> TemplateVersion:
    """Store a template, which is new, with its first draft.

    Raise InvalidPayload if the language is unknown, or if the template exists.
    """
    if not languages.is_language(new.language):
        raise errors.InvalidPayload.at(
            "language", gettext("This language or country doesn't exist.")
        )
    try:
        with transaction.atomic():
            new.save(force_insert=True)
            return _added(TemplateVersion, new, 1, texts or {}, by)
    except IntegrityError:
        message = gettext("%(name)s exists already in %(language)s for %(channel)s.") % {
            "name": new.name,
            "language": new.language,
            "channel": new.channel,
        }
        raise errors.InvalidPayload.at("language", message) from None


def discard(version: Version, seen: Seen) -> None:
    """Delete a draft as the person has seen it. Raise DraftChanged."""
    versions = type(version)._default_manager
    rows = versions.filter(pk=version.pk, state=Version.State.DRAFT, revision=seen.revision)
    if not rows.delete()[0]:
        raise DraftChanged(versions.filter(pk=version.pk).first())


def delete_template(template: Template) -> None:
    """Delete a template with its drafts. Raise InvalidPayload if a version was ever active."""
    with transaction.atomic():
        locked = Template.objects.select_for_update().get(pk=template.pk)
        if locked.versions.exclude(state=Version.State.DRAFT).exists():
            raise errors.InvalidPayload.at("template", gettext(USED))
        locked.delete()
