"""A cell `eu`, and organizations that are on their way from it or to it."""

from collections.abc import Iterator
from typing import Any

import pytest

from rme.cells import placements
from rme.tenants.models import Organization, Placement


@pytest.fixture
def cell(settings: Any) -> Iterator[None]:
    """Let this deployment be the cell `eu`."""
    settings.CELL = "eu"
    placements.forget()
    yield
    placements.forget()


def place(org: Organization, phase: str) -> None:
    """Put an organization into a phase of its move to or from the cell `us`, known at once."""
    Placement.objects.update_or_create(pk=org.pk, defaults={"phase": phase, "cell": "us"})
    placements.forget()
