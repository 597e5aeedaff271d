"""The rules of docs/upgrading.md: what a migration may do while the release before still runs.

They are read from the operations and the models' states: what is refused depends on what the
release before knows, and on how large a table may be. `statements` has the rules for RunSQL.
"""

import re
from collections.abc import Iterable, Iterator

from django.contrib.postgres import operations as postgres
from django.db import connection, migrations
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.operations.models import ModelOperation
from django.db.migrations.state import ModelState, ProjectState
from django.db.models import NOT_PROVIDED, Field, GeneratedField, Value
from django.db.models.functions import Now

from messaging.models import PARTITIONED
from rme.core.db.indexes import AddTableIndex, RemoveTableIndex
from rme.core.db.partitions.indexes import AddPartitionedIndex
from rme.core.db.partitions.options import SetPartitionOptions
from rme.post_deploy import is_post_deploy
from tests.migrating import statements

RELEASED = {
    "bot": "0002_plain_texts",
    "crm": "0007_contact_names",
    "messaging": "0041_sender_domain_records",
    "push": "0003_browsers",
    "tenants": "0012_placements",
}
"""The last migrations of the release before. A release moves them to its own."""
SMALL = {
    "bot": {"botsettings"},
    "crm": {"platform"},
    "messaging": {
        *("archivefile", "archiveerasure", "archiveprogress", "category", "circuitchange"),
        *(
            "counteduntil",
            "ledgercheck",
            "listcolumns",
            "partial",
            "pause",
            "privacyrequest",
            "provideraccount",
        ),
        *("savedfilter", "senderdomain", "sendingrules", "suppressionimport", "template"),
        *("templateversion", "webhookendpoint"),
    },
    "tenants": {
        *("apikey", "application", "applicationkey", "invitation", "membership", "organization"),
        *("placement", "user"),
    },
}
"""The models whose tables an organization fills with some rows by hand. All others grow."""
_PARTITIONED = {model._meta.model_name for model in PARTITIONED}
_BUILDS = (migrations.AddIndex, migrations.AddConstraint)
_RENAMES = (migrations.RenameField, migrations.RenameModel, migrations.AlterModelTable)
_DATA = (migrations.RunPython, migrations.RunSQL)
_NOTHING = (
    *(migrations.AlterModelManagers, migrations.AlterModelOptions),
    *(migrations.AlterModelTableComment, migrations.CreateModel, migrations.RenameIndex),
    SetPartitionOptions,
)
"""What takes no lock for long, and nothing away."""


def unreleased(loader: MigrationLoader) -> list[Migration]:
    """Return the migrations since the release before, in the order in which they are applied."""
    released = set(_plan(loader, RELEASED.items()))
    leaves = [node for node in loader.graph.leaf_nodes() if node[0] in RELEASED]
    plan = [node for node in _plan(loader, leaves) if node[0] in RELEASED]
    return [loader.graph.nodes[node] for node in plan if node not in released]


def former_state(loader: MigrationLoader) -> ProjectState:
    """Return the models of the release before."""
    return loader.project_state(list(RELEASED.items()))


def violations(migration: Migration, state: ProjectState, former: ProjectState) -> list[str]:
    """Return a sentence for each violation; `state` is before the migration and is changed."""
    found, locked = [], set()
    for operation in migration.operations:
        known = (migration.app_label, _model_name(operation)) in former.models
        if known or not _model_name(operation):
            each = _Operation(migration, operation, state)
            found += each.violations()
            locked |= {each.name} if each.locks() else set()
        operation.state_forwards(migration.app_label, state)
    if migration.atomic and len(locked) > 1:
        names = ", ".join(sorted(locked))
        found.append(f"One table that grows a migration, or all stay locked to its end: {names}.")
    kinds = {isinstance(operation, _DATA) for operation in migration.operations}
    if kinds == {True, False}:
        found.append("Rows and schema are changed by migrations of their own.")
    return found


class _Operation:
    """An operation on a table that the release before uses."""

    def __init__(self, migration: Migration, operation: Operation, state: ProjectState) -> None:
        self.migration, self.operation, self.state = migration, operation, state
        self.post_deploy = is_post_deploy(migration)
        self.name = _model_name(operation)
        self.grows = self.name not in SMALL.get(migration.app_label, set())

    def violations(self) -> Iterator[str]:
        match self.operation:
            case RemoveTableIndex():
                yield from self._taken_away()
                yield from self._concurrently()
            case AddPartitionedIndex() | AddTableIndex():
                yield from self._concurrently()
            case postgres.AddIndexConcurrently() | postgres.RemoveIndexConcurrently():
                yield f"An index of {self.name}: by AddTableIndex or RemoveTableIndex."
            case postgres.AddConstraintNotValid():
                yield from self._constrained()
            case _ if isinstance(self.operation, _NOTHING):
                return
            case migrations.AddField(name=name, field=field):
                yield from self._added(f"{self.name}.{name}", field)
            case migrations.AlterField(name=name):
                yield from self._altered(f"{self.name}.{name}", *self._fields(name))
            case migrations.RemoveField(name=name):
                yield from self._taken_away()
                if not is_filled_in(self._model().fields[name]):
                    yield f"{self.name}.{name} needs null or db_default first: it is not written."
            case migrations.DeleteModel() | migrations.RemoveConstraint():
                yield from self._taken_away()
            case migrations.RemoveIndex():
                yield from self._taken_away()
                if self._is_whole():
                    yield f"An index of {self.name} is removed by RemoveTableIndex."
            case _ if isinstance(self.operation, _RENAMES):
                yield f"{self.name} is renamed: add, copy, and remove a release later."
            case _ if isinstance(self.operation, _BUILDS):
                yield from self._built()
            case migrations.RunSQL():
                yield from statements.violations(
                    _text(self.operation),
                    atomic=self.migration.atomic,
                    post_deploy=self.post_deploy,
                )
            case migrations.RunPython() | postgres.ValidateConstraint():
                if self.migration.atomic:
                    yield "Rows are read or changed in batches, with atomic = False."
            case _:
                yield f"{type(self.operation).__name__} has no rule: write one."

    def locks(self) -> bool:
        """Return whether the operation locks a table that grows, if for a moment."""
        if isinstance(self.operation, migrations.AlterField):
            before, after = self._fields(self.operation.name)
            return self.grows and _stored(before) != _stored(after)
        harmless = migrations.AlterModelManagers, migrations.AlterModelOptions
        return bool(self.name) and self.grows and not isinstance(self.operation, harmless)

    def _model(self) -> ModelState:
        return self.state.models[self.migration.app_label, self.name]

    def _fields(self, name: str) -> "list[Field[object, object]]":
        """Return a field before and after the operation, each as part of its model."""
        app, later = self.migration.app_label, self.state.clone()
        self.operation.state_forwards(app, later)
        models = (each.apps.get_model(app, self.name) for each in (self.state, later))
        return [model._meta.get_field(name) for model in models]

    def _is_whole(self) -> bool:
        """Return whether it is one table that grows: partitions have no concurrent removal."""
        return self.grows and self.name not in _PARTITIONED

    def _taken_away(self) -> Iterator[str]:
        if not self.post_deploy:
            yield f"What the release before uses of {self.name} goes post-deploy."

    def _concurrently(self) -> Iterator[str]:
        if self.migration.atomic or len(self.migration.operations) > 1:
            yield "An index is built concurrently: atomic = False, and nothing else beside it."

    def _added(self, name: str, field: "Field[object, object]") -> Iterator[str]:
        if not is_filled_in(field):
            yield f"{name} needs null or db_default: it is not written yet."
        default = getattr(field, "db_default", NOT_PROVIDED)
        constant = default is NOT_PROVIDED or not hasattr(default, "resolve_expression")
        if self.grows and not (constant or isinstance(default, Value | Now)):
            yield f"{name}: its default is computed for each row, under a lock."
        if self.grows and (isinstance(field, GeneratedField) or field.unique or field.db_index):
            yield f"{name}: its values or its index are built under a lock."

    def _altered(
        self, name: str, before: "Field[object, object]", after: "Field[object, object]"
    ) -> Iterator[str]:
        if not _is_wider(before, after):
            yield f"{name} changes its type: add a column, copy, and remove a release later."
        if before.null and not after.null and (self.grows or not self.post_deploy):
            yield f"{name} is made NOT NULL: a valid check first, and post-deploy."
        gains = (after.unique and not before.unique) or (after.db_index and not before.db_index)
        if self.grows and gains:
            yield f"{name}: its index is built under a lock."
        if _is_foreign_key(after) and not _is_foreign_key(before):
            yield f"{name}: its foreign key reads the table under a lock, and may be broken."
        loses = before.db_default is not NOT_PROVIDED and not is_filled_in(after)
        if (loses or (before.null and not after.null)) and not self.post_deploy:
            yield f"{name}: the release before leaves it out."

    def _constrained(self) -> Iterator[str]:
        if not self.post_deploy:
            yield f"The release before may break a constraint of {self.name}: post-deploy."

    def _built(self) -> Iterator[str]:
        if isinstance(self.operation, migrations.AddConstraint):
            yield from self._constrained()
        if self.grows:
            yield f"{self.name} is read under a lock: build the index or the check apart."


def is_filled_in(field: "Field[object, object]") -> bool:
    """Return whether a row without the field is accepted."""
    has_default = field.db_default is not NOT_PROVIDED
    return field.null or has_default or field.many_to_many or isinstance(field, GeneratedField)


def _is_wider(before: "Field[object, object]", after: "Field[object, object]") -> bool:
    """Return whether all values of before fit, and no row is written anew."""
    (was, *rest), (now, *others) = (_type(each) for each in (before, after))
    if rest != others:
        return False
    if was == now:
        return True
    texts = [re.fullmatch(r"varchar\((\d+)\)", str(each)) for each in (was, now)]
    if texts[0] and now == "text":
        return True
    return bool(texts[0] and texts[1] and int(texts[1][1]) >= int(texts[0][1]))


def _type(field: "Field[object, object]") -> tuple[str | None, object, object]:
    """Return the type of a column, its collation, and the check that its type brings along."""
    given = field.db_parameters(connection)
    return given["type"], given.get("collation"), given["check"]


def _is_foreign_key(field: "Field[object, object]") -> bool:
    return field.is_relation and bool(getattr(field, "db_constraint", False))


def _stored(field: "Field[object, object]") -> tuple[object, ...]:
    """Return what the database knows of a field."""
    own = field.null, field.unique, field.db_index, field.db_default
    return *_type(field), *own, _is_foreign_key(field)


def _model_name(operation: Operation) -> str:
    """Return the model of an operation, "" if it has none."""
    name = getattr(operation, "model_name", None)
    if name is None and isinstance(operation, ModelOperation):
        name = getattr(operation, "old_name", None) or operation.name
    return str(name or "").lower()


def _text(operation: migrations.RunSQL) -> str:
    """Return the statements of RunSQL, which may be a text or a list with parameters."""
    given = operation.sql
    parts = [given] if isinstance(given, str) else list(given)
    return ";\n".join(each if isinstance(each, str) else str(each[0]) for each in parts)


def _plan(loader: MigrationLoader, nodes: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return all that some migrations need, each once, in the order in which they are applied."""
    return list(dict.fromkeys(each for node in nodes for each in loader.graph.forwards_plan(node)))
