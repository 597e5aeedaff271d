"""Files become drafts of an organization's templates, or active versions; all of them or none.

A draft of another person is never overwritten: what differs from it is a new draft.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils.translation import gettext, gettext_noop

from messaging.content import costly_steps, drafts, partials, publishing, templates
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
from messaging.models import Partial, PartialVersion, Template, TemplateVersion, Version
from messaging.policy import organization_policy
from rme.core import errors
from rme.tenants import audit
from rme.tenants.audit import Action, Actor, NewEntry
from rme.tenants.organizations import languages

MEANWHILE = gettext_noop("Another person has added one of these meanwhile. Try again.")


@dataclass(frozen=True, slots=True)
class _Stored:
    """A template that exists, with its newest draft or else its active version, if it has one."""

    template: Template
    version: TemplateVersion | None


@dataclass(frozen=True, slots=True)
class _StoredPartial:
    """A partial that exists, with its newest version if that is a draft."""

    partial: Partial
    draft: PartialVersion | None

    @property
    def text(self) -> str:
        return self.draft.text if self.draft else self.partial.text


def push(
    organization_id: str,
    files: Sequence[SourceFile],
    by: Actor,
    *,
    publish: bool = False,
    dry_run: bool = False,
) -> list[FileChange]:
    """Store files as drafts, and make them active if `publish`; return what changes, by path.

    Raise FilesRefused, with every error, if there is one; nothing is stored then. A dry run
    does the same and undoes it. The number of statements does not grow with the files.
    """
    template_files, pieces = texts.read_all(files)
    with transaction.atomic():
        stored_templates = _stored(organization_id, template_files)
        stored_texts = templates.locked_partials(organization_id)
        _check(organization_id, template_files, pieces, stored_templates, stored_texts)
        stored_partials = _stored_partials(organization_id, pieces)
        partial_kinds = _partial_kinds(pieces, stored_partials)
        kinds = {each.path: _kind(each, stored_templates.get(each.key)) for each in template_files}
        partial_rows, entries = _write_partials(
            organization_id, pieces, partial_kinds, stored_partials, by
        )
        rows, noted = _write_drafts(organization_id, template_files, kinds, stored_templates, by)
        entries += noted
        published: set[str] = set()
        if publish:
            published = {
                path for path, row in [*partial_rows.items(), *rows.items()] if not _is_active(row)
            }
            entries += _publish_partials(organization_id, partial_rows, by)
            entries += _publish([rows[path] for path in sorted(rows.keys() & published)], by)
            _check_users(organization_id, partial_rows)
        audit.record(by, entries)
        transaction.set_rollback(dry_run)
    templates.forget_partials(organization_id)
    kinds_by_path = {**partial_kinds, **kinds}
    return [
        FileChange(path, kinds_by_path[path], path in published) for path in sorted(kinds_by_path)
    ]


def _stored(
    organization_id: str, template_files: Sequence[TemplateFile]
) -> dict[TemplateKey, _Stored]:
    """Return the templates of the files that exist, and lock them; two queries."""
    all_templates = Template.objects.filter(organization_id=organization_id)
    named_templates = all_templates.filter(name__in={each.key[0] for each in template_files})
    stored_by_id = {
        row.pk: _Stored(row, None) for row in named_templates.select_for_update().order_by("pk")
    }
    # A draft is newer than the active version.
    for row in current(named_templates).order_by("version"):
        stored_by_id[row.template_id] = _Stored(stored_by_id[row.template_id].template, row)
    return {
        (t.template.name, t.template.language, t.template.channel): t for t in stored_by_id.values()
    }


def _stored_partials(
    organization_id: str, pieces: Sequence[PartialFile]
) -> dict[str, _StoredPartial]:
    """Return the partials of the files that exist, by name; two queries."""
    rows = Partial.objects.filter(
        organization_id=organization_id, name__in=[each.name for each in pieces]
    )
    existing = list(rows) if pieces else []
    newest = partials.newest_drafts(existing)
    return {row.name: _StoredPartial(row, newest.get(row.pk)) for row in existing}


# --- what is wrong ------------------------------------------------------------------------------
def _check(
    organization_id: str,
    template_files: Sequence[TemplateFile],
    pieces: Sequence[PartialFile],
    stored_templates: Mapping[TemplateKey, _Stored],
    stored_texts: Mapping[str, str],
) -> None:
    """Raise FilesRefused with all that prevents the files from becoming active versions."""
    categories = sorted(organization_policy.of(organization_id).categories)
    all_partials = {**stored_texts, **{each.name: each.text for each in pieces}}
    problems = list(_partial_problems(organization_id, pieces, all_partials))
    versions = [(file.texts, all_partials) for file in template_files]
    checked = costly_steps.check_versions(organization_id, versions)
    for file, version in zip(template_files, checked, strict=True):
        problems += _owner_problems(file, stored_templates.get(file.key), categories)
        for problem in version.problems:
            problems.append(file.problem(problem.field, problem.message, problem.line))
    if problems:
        raise FilesRefused(problems)


def _partial_problems(
    organization_id: str, pieces: Sequence[PartialFile], all_partials: Mapping[str, str]
) -> Iterator[FileProblem]:
    pairs = [(piece.text, all_partials) for piece in pieces]
    checked = costly_steps.check_partials(organization_id, pairs)
    for piece, problems in zip(pieces, checked, strict=True):
        for problem in problems:
            yield FileProblem(piece.path, problem.message, "", problem.line)


def _owner_problems(
    file: TemplateFile, stored_template: _Stored | None, categories: Sequence[str]
) -> Iterator[FileProblem]:
    """Yield what is wrong with the language and the category of a file."""
    if stored_template is None:
        if not languages.is_language(file.key[1]):
            yield FileProblem(
                file.path, gettext("This language or country doesn't exist."), "language"
            )
        if file.category not in categories:
            category_list = ", ".join(categories)
            yield file.problem(
                "category",
                gettext("This category doesn't exist. Choose one of %(categories)s.")
                % {"categories": category_list},
            )
    elif file.category != stored_template.template.category:
        category = stored_template.template.category
        yield file.problem(
            "category",
            gettext(
                "The template has the category %(category)s, which is changed on its page, under "
                "Languages and channels."
            )
            % {"category": category},
        )


def _check_users(organization_id: str, published: Mapping[str, PartialVersion]) -> None:
    """Raise FilesRefused if an active text does not parse any more with the published partials."""
    names = {row.partial.name: path for path, row in published.items()}
    if names and (broken := partials.broken(organization_id, names)):
        raise FilesRefused([FileProblem(names[name], message) for name, message in broken])


# --- what is stored -----------------------------------------------------------------------------
def _partial_kinds(
    pieces: Sequence[PartialFile], stored_partials: Mapping[str, _StoredPartial]
) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for piece in pieces:
        row = stored_partials.get(piece.name)
        is_same = row is not None and texts.normal(row.text) == piece.text
        kinds[piece.path] = "unchanged" if is_same else "changed" if row else "created"
    return kinds


def _kind(file: TemplateFile, stored_template: _Stored | None) -> Kind:
    if stored_template is None or stored_template.version is None:
        return "created" if stored_template is None else "changed"
    return "unchanged" if texts.texts_of(stored_template.version) == file.texts else "changed"


def _write_partials(
    organization_id: str,
    pieces: Sequence[PartialFile],
    kinds: Mapping[str, Kind],
    stored_partials: Mapping[str, _StoredPartial],
    by: Actor,
) -> tuple[dict[str, PartialVersion], list[NewEntry]]:
    """Store what differs as drafts; return the draft of each file, by path, and audit entries."""
    owners = {name: each.partial for name, each in stored_partials.items()}
    try:
        added = partials.add_all(
            organization_id, [each.name for each in pieces if each.name not in owners]
        )
    except IntegrityError:
        raise FilesRefused([FileProblem("partials", gettext(MEANWHILE))]) from None
    owners |= {row.name: row for row in added}
    differing = [each for each in pieces if kinds[each.path] != "unchanged"]
    saved = partials.save_all([(owners[each.name], each.text) for each in differing], by)
    rows = {
        each.path: draft
        for each in pieces
        if each.name in stored_partials and (draft := stored_partials[each.name].draft)
    }
    rows |= {each.path: row for each, row in zip(differing, saved, strict=True)}
    entries = [
        audit.about(
            row.partial,
            Action.ADDED if kinds[each.path] == "created" else Action.CHANGED,
            text="draft of a file",
        )
        for each, row in zip(differing, saved, strict=True)
    ]
    return rows, entries


def _write_drafts(
    organization_id: str,
    template_files: Sequence[TemplateFile],
    kinds: Mapping[str, Kind],
    stored_templates: Mapping[TemplateKey, _Stored],
    by: Actor,
) -> tuple[dict[str, TemplateVersion], list[NewEntry]]:
    """Store what differs as drafts; return the version of each file, by path, and audit entries."""
    owners = {key: each.template for key, each in stored_templates.items()}
    new = [
        Template(
            organization_id=organization_id,
            name=each.key[0],
            language=each.key[1],
            channel=each.key[2],
            category=each.category,
        )
        for each in template_files
        if each.key not in owners
    ]
    try:
        with transaction.atomic():
            Template.objects.bulk_create(new)
    except IntegrityError:
        raise FilesRefused([FileProblem("templates", gettext(MEANWHILE))]) from None
    owners |= {(row.name, row.language, row.channel): row for row in new}
    differing = [each for each in template_files if kinds[each.path] != "unchanged"]
    new_texts = [(owners[each.key], each.texts) for each in differing]
    saved = drafts.save_all(TemplateVersion, new_texts, by)
    rows = {
        each.path: version
        for each in template_files
        if each.key in stored_templates and (version := stored_templates[each.key].version)
    }
    rows |= {each.path: row for each, row in zip(differing, saved, strict=True)}
    entries = [audit.about(row, Action.ADDED, text="file") for row in new]
    entries += [
        _entry(row, Action.ADDED if row.revision == 1 else Action.CHANGED, text="draft of a file")
        for row in saved
    ]
    return rows, entries


def _entry(row: TemplateVersion, action: Action, **fields: str) -> NewEntry:
    return audit.about(row, action, row.organization_id, **fields)


def _is_active(row: Version) -> bool:
    return row.state == Version.State.ACTIVE


def _publish_partials(
    organization_id: str, rows: Mapping[str, PartialVersion], by: Actor
) -> list[NewEntry]:
    """Make drafts of partials active. Raise FilesRefused if one waits for a review."""
    with _refusals("partials"):
        partials.activate_all(organization_id, list(rows.values()), by)
    return [
        audit.about(row.partial, Action.PUBLISHED, text=f"version {row.version}")
        for row in rows.values()
    ]


def _publish(rows: Iterable[TemplateVersion], by: Actor) -> list[NewEntry]:
    """Make versions active. Raise FilesRefused if one waits for a review."""
    drafts_to_publish = list(rows)
    with _refusals("templates"):
        publishing.publish_all(drafts_to_publish, by)
    return [_entry(row, Action.PUBLISHED) for row in drafts_to_publish]


@contextmanager
def _refusals(path: str) -> Iterator[None]:
    """Raise FilesRefused instead of what publishing raises."""
    try:
        yield
    except errors.InvalidPayload as error:
        raise FilesRefused(
            [FileProblem(path, each.message, each.field) for each in error.details]
        ) from error
