"""Post-deploy migrations: those that wait until no process of the release before runs any more.

A migration whose class has `post_deploy = True` takes away what the release before reads or writes.
`manage.py migrate --pre-deploy` leaves it for later, and this release serves without it. The rules
are in docs/upgrading.md.
"""

from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor


@dataclass(frozen=True, slots=True)
class Waiting:
    """The migrations that are not applied, each in the order in which they are to be.

    `blocked` are no post-deploy migrations, but come after one.
    """

    pre_deploy: list[Migration]
    post_deploy: list[Migration]
    blocked: list[Migration]


def waiting(connection: BaseDatabaseWrapper) -> Waiting:
    """Return the migrations that are not applied."""
    executor = MigrationExecutor(connection)
    graph = executor.loader.graph
    pending = Waiting([], [], [])
    not_before: set[tuple[str, str]] = set()
    is_new = not executor.loader.applied_migrations  # there is no release before
    for migration, _ in executor.migration_plan(graph.leaf_nodes()):
        key = (migration.app_label, migration.name)
        is_blocked = any(parent.key in not_before for parent in graph.node_map[key].parents)
        if is_new:
            pending.pre_deploy.append(migration)
            continue
        if is_post_deploy(migration):
            pending.post_deploy.append(migration)
        elif is_blocked:
            pending.blocked.append(migration)
        else:
            pending.pre_deploy.append(migration)
            continue
        not_before.add(key)
    return pending


def is_post_deploy(migration: Migration) -> bool:
    return bool(getattr(migration, "post_deploy", False))
