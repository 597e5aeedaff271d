"""What is unique in all cells: integer keys, and ids of organizations.

Links name an organization by its id, and so do callers of the bots.
"""

from rme.cells import calls, signatures
from rme.cells.placements import where


def cell_that_has(organization_id: str, ask: calls.Ask = calls.ask) -> str:
    """Return the other cell that has an organization of an id; nothing if none has.

    Raise calls.CellNotReached if a cell that may have it does not answer.
    """
    if (placement := where(organization_id)).phase:
        return placement.cell
    question = {"kind": "organization", "value": organization_id}
    for cell in calls.other_cells():
        if owner := ask(cell, signatures.OWNER, question).get("cell"):
            return str(owner)
    return ""
