"""Whose facts the gates need: the contacts and addresses of organizations, as parameters."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from rme.core.addresses import all_spellings
from rme.core.db import sql


class Subjects(NamedTuple):
    """Arrays for a statement, all in the order of the organizations."""

    organizations: str
    contacts: str
    addresses: str
    """A number is looked up as all networks write it."""


def of(
    contact_ids: Mapping[str, Collection[str]], addresses: Mapping[str, Collection[str]]
) -> Subjects:
    """Return the subjects of organizations. Both mappings must answer for each one of
    `contact_ids`.
    """
    return Subjects(
        sql.array(contact_ids),
        sql.arrays(contact_ids.values()),
        sql.arrays(all_spellings(addresses[each]) for each in contact_ids),
    )
