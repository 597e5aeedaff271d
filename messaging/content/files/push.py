"""Files become drafts of an organization's templates, or active versions; all of them or none.

A draft of another person is never overwritten: what differs from it is a new draft. Partials have
no drafts, so a change of one is made only together with publishing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from messaging.content import drafts, partials, publishing, rendering, templates
from messaging.content.files import texts
from messaging.content.files.file_types import (
    FileChange,
    FileProblem,
    FilesRefused,
    Kind,
    PartialFile,
    SourceFile,
    TemplateFile,
)
from messaging.content.files.pull import current
from messaging.content.templates import TemplateKey
from messaging.models import Partial, Template, TemplateVersion
from messaging.policy import organization_policy
from rme.core import errors
from rme.tenants import audit, languages
from rme.tenants.audit import Action, Actor, NewEntry

LIVE = "is changed. A partial has no drafts: it takes effect only when all is published"


@dataclass(frozen=True, slots=True)
class _Stored:
    """A template that exists, with its newest draft or else its active version, if it has one."""

    template: Template
    version: TemplateVersion | None


def push(
    organization_id: str,
    files: Sequence[SourceFile],
    by: Actor,
    *,
    publish: bool = False,
    dry_run: bool = False,
) -> list[FileChange]:
    """Store files as drafts, and make them active if `publish`; return what changes, by path.

    Raise FilesRefused, with all that is wrong, if anything is; nothing is stored then. A dry run
    does the same and undoes it. The number of statements does not grow with the files.
    """
    wanted, pieces = texts.read_all(files)
    with transaction.atomic():
        stored = _stored(organization_id, wanted)
        known = templates.locked_partials(organization_id)
        _check(organization_id, wanted, pieces, stored, known)
        partial_changes = _partial_changes(pieces, known)
        changed = [each for each in pieces if partial_changes[each.path] == "changed"]
        if changed and not publish and not dry_run:
            raise FilesRefused([FileProblem(each.path, LIVE) for each in changed])
        kinds = {each.path: _kind(each, stored.get(each.key)) for each in wanted}
        entries = _write_partials(organization_id, pieces, partial_changes)
        rows, noted = _write_drafts(organization_id, wanted, kinds, stored, by)
        entries += noted
        published: set[str] = set()
        if publish:
            published = {path for path, row in rows.items() if not _is_active(row)}
            entries += _publish([rows[path] for path in sorted(published)], by)
            _check_users(organization_id, changed)
        audit.record(by, entries)
        transaction.set_rollback(dry_run)
    templates.forget_partials(organization_id)
    found = {**partial_changes, **kinds}
    return [FileChange(path, found[path], path in published) for path in sorted(found)]


def _stored(organization_id: str, wanted: Sequence[TemplateFile]) -> dict[TemplateKey, _Stored]:
    """Return the templates of the files that exist, and lock them; two queries."""
    own = Template.objects.filter(organization_id=organization_id)
    named = own.filter(name__in={each.key[0] for each in wanted})
    found = {row.pk: _Stored(row, None) for row in named.select_for_update().order_by("pk")}
    for row in current(named).order_by("version"):  # a draft is newer than the active version
        found[row.template_id] = _Stored(found[row.template_id].template, row)
    return {(t.template.name, t.template.language, t.template.channel): t for t in found.values()}


# --- what is wrong ------------------------------------------------------------------------------
def _check(
    organization_id: str,
    wanted: Sequence[TemplateFile],
    pieces: Sequence[PartialFile],
    stored: Mapping[TemplateKey, _Stored],
    known: Mapping[str, str],
) -> None:
    """Raise FilesRefused with all that prevents the files from becoming active versions."""
    categories = sorted(organization_policy.of(organization_id).categories)
    together = {**known, **{each.name: each.text for each in pieces}}
    problems = list(_partial_problems(pieces, together))
    for file in wanted:
        problems += _owner_problems(file, stored.get(file.key), categories)
        for each in rendering.check(file.texts, together):
            problems.append(file.problem(each.field, each.message, each.line))
    if problems:
        raise FilesRefused(problems)


def _partial_problems(
    pieces: Sequence[PartialFile], together: Mapping[str, str]
) -> Iterator[FileProblem]:
    for piece in pieces:
        for each in rendering.check_partial(piece.text, together):
            yield FileProblem(piece.path, each.message, "", each.line)


def _owner_problems(
    file: TemplateFile, stored: _Stored | None, categories: Sequence[str]
) -> Iterator[FileProblem]:
    """Yield what is wrong with the language and the category of a file."""
    if stored is None:
        if not languages.is_language(file.key[1]):
            yield FileProblem(file.path, "There is no such language or country.", "language")
        if file.category not in categories:
            known = ", ".join(categories)
            yield file.problem("category", f"There is no such category: {known}.")
    elif file.category != stored.template.category:
        message = f"The template has the category {stored.template.category}, which is changed on "
        yield file.problem("category", f"{message}its page, under Languages and channels.")


def _check_users(organization_id: str, changed: Sequence[PartialFile]) -> None:
    """Raise FilesRefused if an active text does not parse any more with the changed partials."""
    names = {each.name: each.path for each in changed}
    if names and (found := partials.broken(organization_id, names)):
        raise FilesRefused([FileProblem(names[name], message) for name, message in found])


# --- what is stored -----------------------------------------------------------------------------
def _partial_changes(pieces: Sequence[PartialFile], known: Mapping[str, str]) -> dict[str, Kind]:
    found: dict[str, Kind] = {}
    for each in pieces:
        same = texts.normal(known.get(each.name)) == each.text
        found[each.path] = "unchanged" if same else "changed" if each.name in known else "created"
    return found


def _kind(file: TemplateFile, stored: _Stored | None) -> Kind:
    if stored is None or stored.version is None:
        return "created" if stored is None else "changed"
    return "unchanged" if texts.texts_of(stored.version) == file.texts else "changed"


def _write_partials(
    organization_id: str, pieces: Sequence[PartialFile], kinds: Mapping[str, Kind]
) -> list[NewEntry]:
    """Store partials by one statement; return the entries of the audit."""
    rows = {
        each.path: Partial(organization_id=organization_id, name=each.name, text=each.text)
        for each in pieces
        if kinds[each.path] != "unchanged"
    }
    if rows:
        Partial.objects.bulk_create(
            rows.values(),
            update_conflicts=True,
            unique_fields=["organization", "name"],
            update_fields=["text", "updated_at"],
        )
    return [
        audit.about(row, Action.ADDED if kinds[path] == "created" else Action.CHANGED, text="file")
        for path, row in rows.items()
    ]


def _write_drafts(
    organization_id: str,
    wanted: Sequence[TemplateFile],
    kinds: Mapping[str, Kind],
    stored: Mapping[TemplateKey, _Stored],
    by: Actor,
) -> tuple[dict[str, TemplateVersion], list[NewEntry]]:
    """Store what differs as drafts; return the version of each file, by path, and audit entries."""
    owners = {key: each.template for key, each in stored.items()}
    new = [
        Template(
            organization_id=organization_id,
            name=each.key[0],
            language=each.key[1],
            channel=each.key[2],
            category=each.category,
        )
        for each in wanted
        if each.key not in owners
    ]
    try:
        with transaction.atomic():
            Template.objects.bulk_create(new)
    except IntegrityError:
        message = "Another person has added one of these templates meanwhile. Try again."
        raise FilesRefused([FileProblem("templates", message)]) from None
    owners |= {(row.name, row.language, row.channel): row for row in new}
    differing = [each for each in wanted if kinds[each.path] != "unchanged"]
    saved = drafts.save_all([(owners[each.key], each.texts) for each in differing], by)
    rows = {
        each.path: version
        for each in wanted
        if each.key in stored and (version := stored[each.key].version)
    }
    rows |= {each.path: row for each, row in zip(differing, saved, strict=True)}
    entries = [audit.about(row, Action.ADDED, text="file") for row in new]
    entries += [
        _entry(row, Action.ADDED if row.revision == 1 else Action.CHANGED, text="draft of a file")
        for row in saved
    ]
    return rows, entries


def _entry(row: TemplateVersion, action: Action, **fields: str) -> NewEntry:
    return audit.about(row, action, row.template.organization_id, **fields)


def _is_active(row: TemplateVersion) -> bool:
    return row.state == TemplateVersion.State.ACTIVE


def _publish(rows: Iterable[TemplateVersion], by: Actor) -> list[NewEntry]:
    """Make versions active. Raise FilesRefused if one waits for a review."""
    chosen = list(rows)
    try:
        publishing.publish_all(chosen, by)
    except errors.InvalidPayload as error:
        raise FilesRefused(
            [FileProblem("templates", each.message, each.field) for each in error.details]
        ) from error
    return [_entry(row, Action.PUBLISHED) for row in chosen]
