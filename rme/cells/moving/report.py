"""What a move has done."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rme.cells.moving.copying import Digest


@dataclass(slots=True)
class Report:
    """What a move has done."""

    organization_id: str
    source: str
    target: str
    copied: int = 0
    """Rows of the first pass."""
    caught_up: int = 0
    """Rows of the passes before the pause."""
    difference: int = 0
    """Rows that were copied within the pause."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By step; `paused` is from the pause to the moment in which the target serves it."""
    digests: Mapping[str, Digest] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
