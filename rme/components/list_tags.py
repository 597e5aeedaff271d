"""The template tags of lists: the line of filters, the table, and the panel beside it."""

from django import template

from rme.components.tables import Cell, Table

register = template.Library()
FOLDER = "components/"


@register.inclusion_tag(f"{FOLDER}filter_bar.html")
def filter_bar(form: object, path: str) -> dict[str, object]:
    """Draw a list's filters in one line: its search, those that are set, and *Filter*."""
    return {"form": form, "path": path}


@register.inclusion_tag(f"{FOLDER}data_table.html")
def data_table(table: Table, form_id: str = "") -> dict[str, object]:
    """Draw rows in their columns; boxes of rows belong to the form with the id."""
    return {"table": table, "form_id": form_id}


@register.inclusion_tag(f"{FOLDER}cell.html")
def cell(cell: Cell) -> dict[str, object]:
    """Draw what a row has in one column."""
    return {"cell": cell}


@register.inclusion_tag(f"{FOLDER}column_choice.html")
def column_choice(table: Table) -> dict[str, object]:
    """Draw the choice of a list's columns; the list's own address stores it."""
    return {"table": table}


@register.inclusion_tag(f"{FOLDER}peek.html")
def peek() -> dict[str, object]:
    """Draw the panel beside a list, which a script fills with the row that is looked at."""
    return {}
