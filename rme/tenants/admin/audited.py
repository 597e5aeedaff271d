"""The audit of admin pages: what their forms change, deletions, actions, and a row's history."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from rme.tenants import audit
from rme.tenants.audit import Values

HISTORY = 100
"""The most entries of a row's history."""
ADDED, CHANGED, DELETED = 0, 1, 2
"""The position of each in `audit.actions_of`."""


@dataclass(frozen=True, slots=True)
class InnerChange:
    """A change of a row of an inline. `object_id` is its key, which a deleted row has lost."""

    row: Model
    object_id: str
    action: int
    changes: Values


@dataclass(frozen=True, slots=True)
class Changes:
    """What a page's form changed, and those of its inlines."""

    own: Values
    inner: Sequence[InnerChange]


def changes(form: Any, formsets: Sequence[Any], secrets: Collection[str]) -> Changes:
    """Return what was changed, with secrets redacted."""
    inner = [each for formset in formsets for each in _inner(formset, secrets)]
    return Changes(audit.of_form(form, secrets), inner)


def _inner(formset: Any, secrets: Collection[str]) -> Iterator[InnerChange]:
    # What was saved, since a form that may only add does not say afterwards that it has changed.
    forms = {id(form.instance): form for form in formset.forms}
    saved = [(row, ADDED) for row in formset.new_objects]
    saved += [(row, CHANGED) for row, _ in formset.changed_objects]
    for row, action in saved:
        values = audit.of_form(forms[id(row)], secrets)
        yield InnerChange(row, str(row.pk), action, values)
    for row in formset.deleted_objects:
        key = forms[id(row)].fields[row._meta.pk.name].initial
        yield InnerChange(row, str(key), DELETED, audit.values_of(row, secrets))


class AuditedPage:
    """Records what happens on an admin page, in place of Django's log."""

    model: type[Model]
    opts: Any
    get_object: Any
    show: Any
    has_view_or_change_permission: Any
    secret_fields: ClassVar[frozenset[str]] = frozenset()

    def construct_change_message(
        self, request: HttpRequest, form: "ModelForm[Any]", formsets: Any, add: bool = False
    ) -> Changes:
        """Return what a form and the forms of its inlines changed, for the audit."""
        return changes(form, formsets or [], self.secret_fields)

    def log_addition(self, request: HttpRequest, obj: Model, message: Changes) -> None:
        """Record a new row, and the new rows of its inlines."""
        added, *_ = audit.actions_of(type(obj))
        entries = self.entries_about(obj, added, changes=message.own)
        self.record(request, [*entries, *self._inner(obj, message)])

    def log_change(self, request: HttpRequest, obj: Model, message: Changes) -> None:
        """Record what changed in a row and in the rows of its inlines."""
        _, changed, _ = audit.actions_of(type(obj))
        entries = self.entries_about(obj, changed, changes=message.own) if message.own else []
        self.record(request, [*entries, *self._inner(obj, message)])

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:
        """Record deleted rows with their values."""
        entries = [
            entry
            for row in queryset
            for entry in self.entries_about(
                row,
                audit.actions_of(type(row))[DELETED],
                changes=audit.values_of(row, self.secret_fields),
            )
        ]
        self.record(request, entries)

    def _inner(self, row: Model, message: Changes) -> list[audit.NewEntry]:
        return [
            audit.about(
                each.row,
                audit.actions_of(type(each.row))[each.action],
                self.owner_of(row),
                changes=each.changes,
                object_id=each.object_id,
            )
            for each in message.inner
        ]

    def entries_about(
        self, row: Model, action: audit.Action, **fields: Any
    ) -> list[audit.NewEntry]:
        """Return what is recorded about a row of this page."""
        return [audit.about(row, action, self.owner_of(row), **fields)]

    def owner_of(self, row: Model) -> str | None:
        """Return the organization in whose audit a row's entries stand."""
        raise NotImplementedError

    def record(self, request: HttpRequest, entries: Sequence[audit.NewEntry]) -> None:
        """Record what the person of a request does, by one statement."""
        audit.record(audit.actor_of(request), entries)

    def note(
        self,
        request: HttpRequest,
        row: Model,
        text: str,
        action: audit.Action = audit.Action.CHANGED,
        **fields: Any,
    ) -> None:
        """Record an action on a row."""
        self.record(request, self.entries_about(row, action, text=text, **fields))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: object = None
    ) -> HttpResponse:
        """Return what the audit has about a row, and the log of former releases."""
        key = unquote(object_id)
        row = self.get_object(request, key)
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        kind = ContentType.objects.get_for_model(self.model, for_concrete_model=False)
        older = LogEntry.objects.filter(content_type=kind, object_id=key).order_by("-pk")
        former = list(older.select_related("user")[:HISTORY])
        response: HttpResponse = self.show(
            request,
            "history",
            row,
            title=gettext("History: %(name)s") % {"name": _named(row)},
            lines=audit.history(self.opts.label_lower, key, limit=HISTORY),
            former=[(each, audit.describe_log_entry(each)) for each in former],
        )
        return response


_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def _named(row: object) -> str:
    """Return the name of a row for a title; its kind where its name has an id, which says nothing
    to people.
    """
    name = str(row)
    if isinstance(row, Model) and _ID.search(name):
        return gettext("this %(name)s") % {"name": row._meta.verbose_name}
    return name
