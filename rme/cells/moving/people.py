"""People of an organization that moves: those with a role, and its integration users.

Integer keys of cells do not overlap (`identity`), so a person keeps the id, unless an account of
the target has the same `User.person`. Such an account stays as it is. A user name or an email never
connects two accounts: anybody may have been invited with another's address, and has chosen the
password. A person whose user name is taken in the target gets a new one there.
Whom the move has copied it copies again until the switch: a password that is changed meanwhile must
not stay valid there.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple
from uuid import UUID

from django.db.models import CASCADE
from psycopg.types.json import Jsonb

from rme.cells.moving.copying import KeysOverlap
from rme.cells.moving.databases import Connection
from rme.tenants.models import User

# A test compares it with the foreign keys of the models.
_OF = """
SELECT DISTINCT u.id, u.username, u.person FROM tenants_user u
WHERE u.id IN (SELECT user_id FROM tenants_membership WHERE organization_id = %(organization)s
  UNION SELECT user_id FROM tenants_application WHERE organization_id = %(organization)s
  UNION SELECT invited_by_id FROM tenants_invitation WHERE organization_id = %(organization)s
  UNION SELECT user_id FROM messaging_savedfilter WHERE organization_id = %(organization)s
  UNION SELECT user_id FROM messaging_listcolumns WHERE organization_id = %(organization)s)
ORDER BY u.id
"""
_THERE = """
SELECT id, username, person FROM tenants_user
WHERE id = ANY(%s) OR username = ANY(%s) OR person = ANY(%s)
"""
_USERS = "tenants_user"
_ROWS = {
    _USERS: "SELECT to_jsonb(u) FROM tenants_user u WHERE id = ANY(%s)",
    "mfa_authenticator": "SELECT to_jsonb(a) FROM mfa_authenticator a WHERE user_id = ANY(%s)",
    "account_emailaddress": "SELECT to_jsonb(a) - 'id' FROM account_emailaddress a "
    "WHERE user_id = ANY(%s)",
    "socialaccount_socialaccount": "SELECT to_jsonb(a) - 'id' "
    "FROM socialaccount_socialaccount a WHERE user_id = ANY(%s)",
}
_GROUPS = """
SELECT m.user_id, g.name FROM tenants_user_groups m
JOIN auth_group g ON g.id = m.group_id WHERE m.user_id = ANY(%s)
"""
_JOIN_GROUPS = """
INSERT INTO tenants_user_groups (user_id, group_id)
SELECT given.user_id, g.id FROM unnest(%s::bigint[], %s::text[]) given(user_id, name)
JOIN auth_group g ON g.name = given.name ON CONFLICT DO NOTHING
"""
_UNUSED = """
SELECT id FROM tenants_user u WHERE id = ANY(%s) AND NOT is_superuser
  AND NOT EXISTS (SELECT FROM tenants_membership WHERE user_id = u.id)
  AND NOT EXISTS (SELECT FROM tenants_application WHERE user_id = u.id)
FOR UPDATE
"""
_COPIED_AGAIN = (
    "password",
    "email",
    "proven_email",
    "first_name",
    "last_name",
    "is_staff",
    "is_active",
)
_UPDATE = "(id) DO UPDATE SET " + ", ".join(f"{each} = excluded.{each}" for each in _COPIED_AGAIN)
NAME_LENGTH = 150


class Person(NamedTuple):
    """A user: the columns by which it is recognized."""

    id: int
    username: str
    person: UUID
    """The same in all cells in which a person has an account by a hand-over of a log-in."""


class ArrivingPeople(NamedTuple):
    """The people of an organization, as the target is to have them."""

    ids: Mapping[int, int]
    """The ids there of those who have others, and of those who are copied, who keep theirs."""
    user_names: Mapping[int, str]
    """The names there of those who are copied."""
    renamed: Mapping[str, str]
    """The names there of those who have others."""


def find(
    source: Connection,
    target: Connection,
    organization_id: str,
    cell: str,
    copied: Collection[int] = (),
) -> ArrivingPeople:
    """Find out who is to be copied; `cell` is where they come from. Raise KeysOverlap.

    `copied` are those whom the move has copied before, and copies again.
    """
    users = [Person(*row) for row in source.execute(_OF, {"organization": organization_id})]
    names_to_try = [name for user in users for name in _names(user, cell)]
    rows = target.execute(
        _THERE,
        [[user.id for user in users], names_to_try, [user.person for user in users]],
    ).fetchall()
    users_there = [Person(*row) for row in rows]
    by_id = {user.id: user for user in users_there}
    by_name = {user.username: user for user in users_there}
    by_person = {user.person: user for user in users_there}
    ids: dict[int, int] = {}
    names: dict[int, str] = {}
    for user in users:
        same_id, same_user = by_id.get(user.id), by_person.get(user.person)
        if same_id is not None and same_id.person != user.person:
            raise KeysOverlap(f"the user {user.id} is {same_id.username} there")
        if same_user is None:
            names[user.id] = next(name for name in _names(user, cell) if name not in by_name)
        elif same_user.id != user.id:
            ids[user.id] = same_user.id
        elif user.id in copied:
            names[user.id] = same_user.username
    renamed = {user.username: names[user.id] for user in users if user.id in names}
    return ArrivingPeople(
        ids | {user: user for user in names},
        names,
        {old: new for old, new in renamed.items() if old != new},
    )


def _names(person: Person, cell: str) -> Iterator[str]:
    """Return the user names that a person may get, the own one first; the last one is free."""
    yield person.username
    for suffix in (f".{cell}", f".{cell}.{person.id}"):
        yield f"{person.username[: NAME_LENGTH - len(suffix)]}{suffix}"


def copy(source: Connection, target: Connection, people: ArrivingPeople) -> None:
    """Copy people as they are now. The number of statements does not depend on how many."""
    ids = list(people.user_names)
    if not ids:
        return
    with target.transaction():
        for table, text in _ROWS.items():
            # An email address that is another account's there stays that account's.
            then = "DO NOTHING"
            rows = [row for (row,) in source.execute(text, [ids]).fetchall()]
            if table == _USERS:
                for row in rows:
                    row |= {"username": people.user_names[row["id"]], "is_superuser": False}
                then = _UPDATE
            else:
                target.execute(f"DELETE FROM {table} WHERE user_id = ANY(%s)", [ids])
            if not rows:
                continue
            columns = ", ".join(f'"{name}"' for name in rows[0])
            target.execute(
                f"INSERT INTO {table} ({columns}) SELECT {columns} "
                f"FROM jsonb_populate_recordset(NULL::{table}, %s) ON CONFLICT {then}",
                [Jsonb(rows)],
            )
        groups = source.execute(_GROUPS, [ids]).fetchall()
        members = [[user for user, _ in groups], [name for _, name in groups]]
        target.execute(_JOIN_GROUPS, members)


def of(side: Connection, organization_id: str) -> set[int]:
    """Return the ids of an organization's people in a cell."""
    return {row[0] for row in side.execute(_OF, {"organization": organization_id})}


def remove_unused(side: Connection, ids: Collection[int]) -> int:
    """Delete the accounts that have no role in a cell any more; return how many.

    The number of statements does not depend on how many.
    """
    with side.transaction():
        unused = [user for (user,) in side.execute(_UNUSED, [list(ids)])]
        if unused:
            for text in _unlinking():
                side.execute(text, [unused])
        return side.execute(f"DELETE FROM {_USERS} WHERE id = ANY(%s)", [unused]).rowcount


def _unlinking() -> Iterator[str]:
    """Return what deletes or changes the rows that refer to users, as Django would."""
    for relation in User._meta.related_objects:
        table, column = relation.related_model._meta.db_table, relation.field.column
        if relation.on_delete is CASCADE:
            yield f"DELETE FROM {table} WHERE {column} = ANY(%s)"
        else:
            yield f"UPDATE {table} SET {column} = NULL WHERE {column} = ANY(%s)"
    for field in User._meta.many_to_many:
        yield f"DELETE FROM {field.m2m_db_table()} WHERE {field.m2m_column_name()} = ANY(%s)"
