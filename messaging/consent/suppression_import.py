"""Importing a file of suppressions (see `rme.tenants.imports`).

To import a part twice does no harm: the second time its entries are already listed.
"""

from collections.abc import Collection, Mapping
from typing import IO, NamedTuple
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging.consent import suppressions
from messaging.consent.suppression_export import COLUMNS, EXTRA_COLUMNS
from messaging.consent.suppression_inputs import read_entry
from messaging.domain.channels import ALL, Channel
from messaging.models import Suppression, SuppressionImport
from rme.core import csv_lines
from rme.core.addresses import Digits
from rme.core.csv_lines import Reader, Unreadable
from rme.core.errors import InvalidPayload
from rme.tenants import imports, organizations
from rme.tenants.imports import PartResult, Rows, rejected_rows
from rme.tenants.organizations import OrganizationRecord

__all__ = ["Unreadable", "cancel", "rejected_rows", "start", "step", "work"]


class _Part(NamedTuple):
    """A part that was read: its outcome with the bad rows, and the entries of the other rows."""

    outcome: PartResult
    entries: list[suppressions.NewSuppression]


SOURCE = "IMPORT"
PART_LINES = 5000


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.lower()))


_CODES: Mapping[str, Mapping[str, str]] = {
    "channel": {"mail": Channel.EMAIL, **{_letters(each): each for each in (*Channel, ALL)}},
    "reason": {
        "unsubscribed": Suppression.Reason.UNSUBSCRIBE,
        **{_letters(each): each for each in Suppression.Reason.values},
    },
}
"""The codes by the letters that people write for them, like `e-mail` and `Hard bounce`."""
_UNKNOWN_CODES = {
    "channel": gettext_lazy("is not Email, SMS, Push or All"),
    "reason": gettext_lazy(
        "is not Hard bounce, Complaint, STOP, Unsubscribe, Invalid address or Manual"
    ),
}
_NOT_ADDRESSES = {
    Channel.EMAIL.value: gettext_lazy("is not an email address"),
    Channel.SMS.value: gettext_lazy("is not a phone number"),
    Channel.PUSH.value: gettext_lazy("is an address, and push has none: name the contact"),
    ALL: gettext_lazy("is neither an email address nor a phone number"),
}
"""What is wrong with an address, by channel."""


def start(
    organization_id: str,
    name: str,
    file: IO[bytes],
    started_by: str,
    part_lines: int = PART_LINES,
    *,
    digits: Digits = Digits.UNSAID,
) -> SuppressionImport:
    """Store a file to be imported, completely or not at all. Raises Unreadable."""
    reader = Reader(file, part_lines, SuppressionImport.line_limit)
    first = reader.read_header()
    columns = csv_lines.header(first, COLUMNS, EXTRA_COLUMNS, reader.delimiter)
    if "channel" not in columns or not {"address", "contactId"} & set(columns):
        raise Unreadable(_("The first line must name channel, and one of address and contactId."))
    run = SuppressionImport(
        organization_id=organization_id,
        name=name,
        columns=columns,
        delimiter=reader.delimiter,
        digits=digits.value,
        started_by=started_by,
    )
    imports.store(run, reader)
    return run


def prepare(organization_id: str, name: str, file: IO[bytes], started_by: str) -> SuppressionImport:
    """Store a file whose columns a person will choose. Raises Unreadable."""
    run = SuppressionImport(organization_id=organization_id, name=name, started_by=started_by)
    imports.prepare(run, Reader(file, PART_LINES, SuppressionImport.line_limit))
    return run


def problem_of(columns: Collection[str]) -> str:
    """Return why a file cannot be imported by these columns ("": left out), or an empty text."""
    if "channel" not in columns:
        return _("No column is the channel, which every entry needs. Choose one for all rows.")
    if not {"address", "contactId"} & set(columns):
        return _("No column is an address or a contact id. Every entry needs one of them.")
    return ""


def cell_problem(column: str, cell: str, organization: OrganizationRecord, digits: Digits) -> str:
    """Return what is wrong with a cell of any row, as the end of a sentence; empty if nothing."""
    row = {"channel": ALL, "contactId": "any", column: cell}
    if column == "address":
        del row["contactId"]
    entry = _entry(row, organization, digits)
    return "" if isinstance(entry, suppressions.NewSuppression) else dict(entry).get(column, "")


def work() -> bool:
    """Import one part of the next file; return whether there may be more to do."""
    return imports.import_next_part(SuppressionImport, _store, _read)


def step(run_id: UUID) -> SuppressionImport:
    """Import the next part of a file, if its import runs; return the import's state."""
    run: SuppressionImport = imports.import_part_of(SuppressionImport, run_id, _store, _read)
    return run


def cancel(organization_id: str, run_id: UUID) -> bool:
    """Cancel an import; return whether it was running. What was imported stays."""
    return imports.cancel(SuppressionImport, organization_id, run_id)


def _read(run: SuppressionImport, lines: Rows) -> _Part:
    """Parse and check the rows of a part.

    Contacts may be looked up on a remote platform, so no transaction may be open.
    """
    organization, digits = organizations.get(run.organization_id), Digits(run.digits)
    outcome, entries = PartResult(rows=len(lines)), {}
    for number, line in lines:
        try:
            row = imports.cells(run, line)
        except ValueError as error:
            outcome.reject(number, ("row", str(error)))
            continue
        entry = _entry(row, organization, digits)
        if isinstance(entry, suppressions.NewSuppression):
            entries[number] = entry
        else:
            outcome.reject(number, *entry)
    contact_ids = [entry.contact_id for entry in entries.values()]
    unknown_contacts = suppressions.missing_contacts(organization.id, contact_ids)
    for number, entry in list(entries.items()):
        if entry.contact_id in unknown_contacts:
            outcome.reject(number, ("contactId", _("does not exist")))
            del entries[number]
    outcome.problems.sort()
    return _Part(outcome, list(entries.values()))


def _entry(
    row: Mapping[str, str], organization: OrganizationRecord, digits: Digits
) -> suppressions.NewSuppression | list[tuple[str, str]]:
    """Return the entry of a row, or the columns with what is wrong in each."""
    problems, body = [], {}
    for name, cell in row.items():
        if name in _CODES:
            body[name] = _CODES[name].get(_letters(cell), "")
            if not body[name]:
                problems.append((name, str(_UNKNOWN_CODES[name])))
        elif name in COLUMNS:
            body[name] = cell.replace("\n", " ")  # a note may have several lines
    if "channel" not in row:
        problems.append(("channel", _("is missing")))
    if not {"address", "contactId"} & set(row):
        problems.append(("address", _("is missing")))
    if problems:
        return problems
    try:
        return read_entry(body, organization, SOURCE, digits)
    except InvalidPayload as error:
        return [(each.field, _in_words(each.message, body["channel"])) for each in error.details]


def _in_words(message: str, channel: str) -> str:
    """Return a problem as people read it: the API's names the code of the channel."""
    if message == suppressions.not_an_address(channel):
        return str(_NOT_ADDRESSES[channel])
    return message


def _store(run: SuppressionImport, part: _Part) -> PartResult:
    """Put the entries of a part on the list; return the part's outcome.

    A dry run does it and takes it back, so it counts what the import will do. An entry that two
    parts have is counted twice by it.
    """
    outcome = part.outcome
    change = _tried(part) if run.dry_run else suppressions.suppress_alone(part.entries)
    outcome.added, outcome.replaced = len(change.added), change.replaced
    return outcome


def _tried(part: _Part) -> suppressions.Change:
    """Return what the entries of a part would change."""
    with transaction.atomic():
        change = suppressions.suppress_alone(part.entries)
        transaction.set_rollback(True)
    return change
