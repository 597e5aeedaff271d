"""What is unique in all cells: integer keys, and ids of organizations.

Links name an organization by its id, and so do callers of the bots.
"""

from rme.core import cell_calls
from rme.tenants.cells import calls
from rme.tenants.cells.placements import where

KEY_RANGE = 2**40
"""The sequences of the cell with number N begin at N times this."""


def cell_that_has(organization_id: str, ask: calls.Ask = calls.ask) -> str:
    """Return the other cell that has an organization of an id; nothing if none has.

    Raise calls.CellNotReached if a cell that may have it does not answer.
    """
    if (found := where(organization_id)).phase:
        return found.cell
    question = {"kind": "organization", "value": organization_id}
    for cell in calls.other_cells():
        if named := ask(cell, cell_calls.OWNER, question).get("cell"):
            return str(named)
    return ""
