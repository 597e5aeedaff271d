"""Which cell an organization is in, and what its calls get while it moves.

Other packages import what stands here, and `moving`, which moves an organization.
"""

from rme.tenants.cells.abandoned import end_abandoned_pauses
from rme.tenants.cells.calls import CellNotReached, ask, other_cells, signed
from rme.tenants.cells.identifiers import KEY_RANGE, cell_that_has
from rme.tenants.cells.pauses import answer as answer_pauses
from rme.tenants.cells.placements import (
    KNOWN_SECONDS,
    Location,
    Phase,
    absent,
    accepted_here,
    forget,
    here,
    is_here,
    is_written,
    refusals,
    require_here,
    where,
)

__all__ = [
    "KEY_RANGE",
    "KNOWN_SECONDS",
    "CellNotReached",
    "Location",
    "Phase",
    "absent",
    "accepted_here",
    "answer_pauses",
    "ask",
    "cell_that_has",
    "end_abandoned_pauses",
    "forget",
    "here",
    "is_here",
    "is_written",
    "other_cells",
    "refusals",
    "require_here",
    "signed",
    "where",
]
