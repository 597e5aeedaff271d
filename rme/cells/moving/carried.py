"""The tables that an organization's rows are in, found from the models.

A model belongs to an organization by its column `organization_id`, by a foreign key to such a
model, or by the account that it names. A model that stays behind is listed with a reason: a model
that is neither ends every move, and a test.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

from django.apps import apps
from django.db.models import ForeignKey, Model

from rme.tenants.models import AuditEntry, AuditValues, Organization, User

ACCOUNT = "ProviderAccount"
ACCOUNT_TABLES = ("CircuitChange", "ProviderReference", "InboundSmsParts")
"""Models whose rows name their provider account alone, without a foreign key."""
PEOPLE = (
    "tenants.User",
    "tenants.User_groups",
    "mfa.Authenticator",
    "account.EmailAddress",
    "socialaccount.SocialAccount",
)
"""Of people with a role, and of integration users: `people` copies them."""
LEFT_BEHIND: Mapping[str, str] = {
    "account.EmailConfirmation": "is not used",
    "admin.LogEntry": "the log of former releases, which the audit replaced",
    "auth.Group": "every cell has the same",
    "auth.Group_permissions": "every cell has the same",
    "auth.Permission": "every cell has the same",
    "contenttypes.ContentType": "every cell has the same",
    "messaging.ArchiveProgress": "how far this cell's job is",
    "messaging.CountedUntil": "how far this cell's job is",
    "oauth2_provider.DeviceGrant": "is not used",
    "oauth2_provider.Grant": "is not used",
    "oauth2_provider.IDToken": "is not used",
    "oauth2_provider.RefreshToken": "is not used",
    "sessions.Session": "people log in anew",
    "socialaccount.SocialApp": "is not used",
    "socialaccount.SocialToken": "is not used",
    "tenants.GuessCount": "counts guesses of a place or an account while Redis is away",
    "tenants.Assertion": "has no owner: a cell that sees an assertion again within its minutes "
    "refuses it by its own row only",
    "tenants.Cell": "this cell",
    "tenants.Move": "the journal of the cell that is left",
    "tenants.Placement": "where the organization is, seen from this cell",
    "tenants.User_user_permissions": "is not used",
    "usersessions.UserSession": "people log in anew",
}
USER_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "messaging.BulkAction": ("user_id",),
    "messaging.PartialVersion": ("authors",),
    "messaging.TemplateVersion": ("publish_by_id", "authors"),
    "tenants.AuditEntry": ("actor_id", "acting_as_id"),
}
"""Columns that hold ids of people without being foreign keys; `authors` is an array."""
NEVER_CHANGED = frozenset({AuditEntry, AuditValues})
"""The database refuses to change their rows, so those that are there are left as they are."""


class UnknownTables(Exception):
    """Models that neither belong to an organization nor are left behind."""


@dataclass(frozen=True, slots=True)
class CarriedTable:
    """A table with rows of organizations."""

    model: type[Model]
    condition: str
    """Which rows of `t`, in SQL; `{organization}` stands for the id as a literal."""
    user_columns: tuple[str, ...]
    """Columns with ids of people."""

    @property
    def name(self) -> str:
        return self.model._meta.db_table

    @property
    def is_changed(self) -> bool:
        return self.model not in NEVER_CHANGED

    def rows_of(self, organization_id: str) -> str:
        """Return the condition for an organization, whose id is checked when it is made."""
        return self.condition.format(organization=f"'{organization_id}'")


def tables() -> list[CarriedTable]:
    """Return the tables, those that others refer to first. Raise UnknownTables."""
    models = {
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.label not in LEFT_BEHIND and model._meta.label not in PEOPLE
    }
    conditions: dict[type[Model], str] = {}
    while remaining := models - conditions.keys():
        new_conditions = {
            model: text for model in remaining if (text := _condition(model, conditions))
        }
        if not new_conditions:
            raise UnknownTables(", ".join(sorted(model._meta.label for model in remaining)))
        conditions |= new_conditions
    accounts = {model for model in conditions if model.__name__ == ACCOUNT}
    parents = {model: _parents(model, accounts) & conditions.keys() for model in conditions}
    return [
        CarriedTable(model, conditions[model], _user_columns(model))
        for model in TopologicalSorter(parents).static_order()
    ]


def _condition(model: type[Model], conditions: Mapping[type[Model], str]) -> str:
    """Return which rows of a model belong to an organization; "" as long as that is unknown."""
    columns = {field.column for field in model._meta.concrete_fields}
    if model is Organization:
        return "t.id = {organization}"
    if "organization_id" in columns:
        return "t.organization_id = {organization}"
    if model.__name__ in ACCOUNT_TABLES:
        return (
            "t.account_id IN (SELECT a.id FROM messaging_provideraccount a "
            "WHERE a.organization_id = {organization})"
        )
    for field in _keys(model):
        parent = field.related_model
        if isinstance(parent, type) and parent in conditions:
            inner = conditions[parent].replace("t.", "p.")
            key = parent._meta.pk.column
            return (
                f"t.{field.column} IN (SELECT p.{key} FROM {parent._meta.db_table} p WHERE {inner})"
            )
    return ""


def _keys(model: type[Model]) -> list[ForeignKey[Model, Model]]:
    return [field for field in model._meta.concrete_fields if isinstance(field, ForeignKey)]


def _parents(model: type[Model], accounts: set[type[Model]]) -> set[type[Model]]:
    """Return the models whose rows must be there while those of a model are found."""
    related = {field.related_model for field in _keys(model)}
    parents = {each for each in related if isinstance(each, type)} - {model}
    return parents | accounts if model.__name__ in ACCOUNT_TABLES else parents


def _user_columns(model: type[Model]) -> tuple[str, ...]:
    keys = tuple(field.column for field in _keys(model) if field.related_model is User)
    return keys + USER_COLUMNS.get(model._meta.label, ())
