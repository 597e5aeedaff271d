"""Importing a file of suppressions, and the result."""

import io

from messaging.consent import suppression_import
from messaging.models import Suppression

HEADER = "channel,address,contactId,reason,note,expiresAt\n"


def start(org, text, part_lines=suppression_import.PART_LINES):
    content = text.encode() if isinstance(text, str) else text
    return suppression_import.start(org.pk, "f.csv", io.BytesIO(content), "grace", part_lines)


def finish():
    """Do what workers do; gives how many parts were imported."""
    parts = 0
    while suppression_import.work():
        parts += 1
    return parts


def counts(run):
    run.refresh_from_db()
    return (run.state, run.rows, run.done, run.added, run.replaced, run.unchanged, run.rejected)


def stored(org):
    columns = ("channel", "address", "contact_id", "reason", "note", "expires_at", "source")
    return set(Suppression.objects.filter(organization=org).values_list(*columns))


def mails(numbers):
    return HEADER + "".join(f"EMAIL,p{i}@example.com,,MANUAL,,\n" for i in numbers)
