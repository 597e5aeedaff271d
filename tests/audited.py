"""What the audit has, oldest first."""

from rme.tenants.audit import AuditLine, reader
from rme.tenants.models import AuditEntry


def entries(**fields: object) -> list[AuditLine]:
    """Return the entries with such columns, each with its values."""
    return reader.with_values(list(AuditEntry.objects.filter(**fields).order_by("pk")))


def lines(**fields: object) -> list[str]:
    """Return all values and reasons of entries as lines."""
    return [line for each in entries(**fields) for line in each.lines]


def summaries(**fields: object) -> list[tuple[str, str, str]]:
    """Return the actor, the action and the text of each entry."""
    return [
        (each.entry.actor_name, each.entry.action, each.values.text if each.values else "")
        for each in entries(**fields)
    ]
