"""Import of a file of records (see `rme.tenants.imports`).

A row with an id changes that record, in the columns of the file; a row without one adds a record,
or changes the contact with its email if the import matches by email. The number of SQL statements
for a part does not depend on its rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any
from uuid import UUID

from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from rme.core import addresses, csv_lines, ids
from rme.core.addresses import Digits
from rme.core.csv_lines import Reader, Unreadable
from rme.core.db import sql
from rme.crm import folding
from rme.crm.models import Account, Case, Contact, RecordImport
from rme.crm.records import files
from rme.crm.records.files import COLUMNS, EXTRA_COLUMNS, KINDS, FileColumn, NumberRules
from rme.tenants import imports, organizations
from rme.tenants.imports import PartResult, Rows, guessing

PART_ROWS = 1000
MISSING = gettext_noop("is missing")

Values = dict[str, Any]


def start(
    organization_id: str,
    model: type[models.Model],
    name: str,
    file: IO[bytes],
    *,
    started_by: str,
    part_rows: int = PART_ROWS,
) -> RecordImport:
    """Store a file to import, completely or not at all. Raise Unreadable."""
    reader = Reader(file, part_rows, RecordImport.line_limit)
    names = files.names(model)
    first = reader.read_header()
    columns = csv_lines.header(first, names, EXTRA_COLUMNS, reader.delimiter)
    required = [column.name for column in COLUMNS[model] if column.required]
    if "id" not in columns and (lacking := [name for name in required if name not in columns]):
        raise Unreadable(_("The first line must name %(column)s, or id.") % {"column": lacking[0]})
    run = RecordImport(
        organization_id=organization_id,
        kind=model.__name__,
        name=name,
        columns=columns,
        delimiter=reader.delimiter,
        started_by=started_by,
    )
    imports.store(run, reader)
    return run


def prepare(
    organization_id: str,
    model: type[models.Model],
    name: str,
    file: IO[bytes],
    *,
    started_by: str,
) -> RecordImport:
    """Store a file whose columns a person will choose. Raise Unreadable."""
    run = RecordImport(
        organization_id=organization_id, kind=model.__name__, name=name, started_by=started_by
    )
    imports.prepare(run, Reader(file, PART_ROWS, RecordImport.line_limit))
    return run


def problem_of(model: type[models.Model], columns: Sequence[str], *, by_email: bool) -> str:
    """Return why a file cannot be imported by these columns ("": left out), or an empty text."""
    chosen_columns = [column for column in columns if column]
    if by_email and "email" not in chosen_columns:
        return _("Choose the column with the email address, which rows are matched by.")
    if "id" in chosen_columns or by_email:
        return ""
    required = [column.name for column in COLUMNS[model] if column.required]
    lacking = [name for name in required if name not in chosen_columns]
    if not lacking:
        return ""
    text = _("No column is the %(column)s, which every new record needs.")
    return text % {"column": guessing.words(lacking[0])}


def import_next_part() -> bool:
    """Import one part of the file that has waited longest; return whether more may be waiting."""
    return imports.import_next_part(RecordImport, _import_part)


@dataclass(slots=True)
class ParsedRow:
    """A parsed row: its line number, its values by column of the table, and its errors."""

    line: int
    values: Values
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.values.get("id") or "")


def _import_part(run: RecordImport, lines: Rows) -> PartResult:
    model = KINDS[run.kind]
    rules = NumberRules(organizations.get(run.organization_id).region, Digits(run.digits))
    rows = [_read(run, number, line, COLUMNS[model], rules) for number, line in lines]
    if run.by_email:
        _match_by_email(run.organization_id, rows)
    _check_references(run.organization_id, model, rows)
    _check_numbers(run.organization_id, model, rows)
    outcome = PartResult(rows=len(rows))
    for row in rows:
        if row.problems:
            outcome.reject(row.line, *row.problems)
    good = [row for row in rows if not row.problems]
    added = [_complete(model, run.organization_id, row.values) for row in good if not row.id]
    changed = {row.id: _with_derived(model, row.values) for row in good if row.id}
    if not run.dry_run:
        sql.insert({model: added})
        sql.update(model, list(changed.values()))
    outcome.added, outcome.replaced = len(added), len(good) - len(added)
    return outcome


def _read(
    run: RecordImport, number: int, line: str, columns: tuple[FileColumn, ...], rules: NumberRules
) -> ParsedRow:
    row = ParsedRow(number, {})
    try:
        cells = imports.cells(run, line)
    except ValueError as error:
        row.problems.append(("row", str(error)))
        return row
    model = KINDS[run.kind]
    for column in columns:
        if column.name in run.columns or column.name in run.fixed:
            _read_cell(row, model, column, cells.get(column.name, ""), rules)
        elif column.required and not cells.get("id"):
            row.problems.append((column.name, MISSING))
    return row


def _read_cell(
    row: ParsedRow, model: type[models.Model], column: FileColumn, cell: str, rules: NumberRules
) -> None:
    if not cell:
        if column.required:
            row.problems.append((column.name, MISSING))
        row.values[column.column] = None if column.name == "id" else _default(model, column.column)
        return
    try:
        row.values[column.column] = column.read(cell, rules)
    except ValueError as error:
        row.problems.append((column.name, str(error)))


# --- matching -----------------------------------------------------------------------------------
def _match_by_email(organization_id: str, rows: list[ParsedRow]) -> None:
    """Set the id of each row without one to that of the contact with its email: one query.

    Cells that are empty change nothing in a contact that was found.
    """
    emails = {
        row.line: folded
        for row in rows
        if not row.id and (folded := addresses.email(str(row.values.get("email") or "")))
    }
    spellings = {spelling for email in emails.values() for spelling in addresses.spellings(email)}
    contacts = Contact.objects.filter(organization_id=organization_id, email_folded__in=spellings)
    owners: dict[str, list[str]] = {}
    for address, key in contacts.values_list("email_folded", "pk"):
        owners.setdefault(addresses.email(address) or address, []).append(str(key))
    lines: dict[str, int] = {}
    for row in rows:
        email = emails.get(row.line)
        if email is None:
            continue
        keys = owners.get(email, [])
        if email in lines:
            text = _("is the same as in line %(line)d")
            row.problems.append(("email", text % {"line": lines[email]}))
        elif len(keys) > 1:
            row.problems.append(("email", _("belongs to several contacts: name one by its id")))
        elif keys:
            row.problems = [each for each in row.problems if each[1] != MISSING]
            row.values = {name: value for name, value in row.values.items() if value} | {
                "id": keys[0]
            }
        lines.setdefault(email, row.line)


# --- checks against other rows ------------------------------------------------------------------
def _check_references(
    organization_id: str, model: type[models.Model], rows: list[ParsedRow]
) -> None:
    """Reject ids of records that do not exist in the organization: one query for each column."""
    referring = [column for column in COLUMNS[model] if column.refers or column.name == "id"]
    for column in referring:
        target = column.refers or model
        keys = {row.values.get(column.column) for row in rows if not row.problems} - {None}
        if not keys:
            continue
        referred = target._default_manager.filter(organization_id=organization_id, pk__in=keys)
        existing = {str(key) for key in referred.values_list("pk", flat=True)}
        for row in rows:
            key = row.values.get(column.column)
            if key and key not in existing:
                row.problems.append((column.name, _("does not exist")))


def _check_numbers(organization_id: str, model: type[models.Model], rows: list[ParsedRow]) -> None:
    """Reject case numbers that other cases have: one query."""
    if model is not Case:
        return
    numbers = {row.values.get("number") for row in rows if not row.problems} - {None}
    cases = Case.objects.filter(organization_id=organization_id, number__in=numbers)
    owners: Mapping[str, UUID] = dict(cases.values_list("number", "pk")) if numbers else {}
    holders = {number: str(key) for number, key in owners.items()}
    for row in rows:
        number = row.values.get("number")
        if row.problems or number is None:
            continue
        mine = row.id or f"line {row.line}"
        if holders.setdefault(number, mine) != mine:
            row.problems.append(("number", _("belongs to another case")))


# --- rows to store ------------------------------------------------------------------------------
def _complete(model: type[models.Model], organization_id: str, values: Values) -> Values:
    """Return the values of all columns of a new row."""
    columns = [
        str(each.column)
        for each in model._meta.concrete_fields
        if not each.generated and each.column != "created_at"
    ]
    defaults = {column: _default(model, column) for column in columns}
    identity = {"id": ids.new_text_id(), "organization_id": organization_id}
    return _with_derived(model, {**defaults, **values, **identity})


def _default(model: type[models.Model], column: str) -> object:
    (field,) = (each for each in model._meta.concrete_fields if each.column == column)
    default = field.get_default()
    return str(default) if isinstance(default, models.TextChoices) else default


def _with_derived(model: type[models.Model], values: Values) -> Values:
    """Return values with the columns that follow from others."""
    if model is Account and "name" in values:
        return {**values, "name_folded": folding.account_name(values["name"])}
    return values
