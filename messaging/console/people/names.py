"""People by their names, for rows that have contact ids alone."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext, gettext_noop

from messaging.console.access import Viewer
from rme.core import errors
from rme.crm.contacts import get_contacts

GONE = gettext_noop("a deleted contact")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of people by contact id, and what keeps the platform from answering."""

    by_id: Mapping[str, str]
    problem: str = ""

    def of(self, contact_id: str) -> str:
        """Return a person's name, or words that stand for it."""
        return self.by_id.get(contact_id) or (
            gettext("a contact") if self.problem else gettext(GONE)
        )


def read(viewer: Viewer, contact_ids: Collection[str]) -> Names:
    """Return the names of people, of contacts without one their address; one call for all."""
    unique_ids = sorted({each for each in contact_ids if each})
    if not unique_ids:
        return Names({})
    try:
        contacts = get_contacts(viewer.organization_id, unique_ids)
    except errors.Unavailable as error:
        return Names({}, error.message)
    labels = {
        key: each.name
        or viewer.shown(each.email)
        or viewer.shown(each.mobile)
        or gettext("no name")
        for key, each in contacts.items()
    }
    return Names(labels)
