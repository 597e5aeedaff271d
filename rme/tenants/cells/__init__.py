"""Which cell an organization is in, and what its calls get while it moves.

Other packages import what stands here, and `moving`, which moves an organization.
"""

from rme.tenants.cells.abandoned import end_abandoned_pauses
from rme.tenants.cells.placements import (
    CELL_HEADER,
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
    "CELL_HEADER",
    "KNOWN_SECONDS",
    "Location",
    "Phase",
    "absent",
    "accepted_here",
    "end_abandoned_pauses",
    "forget",
    "here",
    "is_here",
    "is_written",
    "refusals",
    "require_here",
    "where",
]
