"""Buttons above the admin's pages, with the types that the theme's decorator lacks."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from django.utils.functional import Promise
from unfold import decorators

View = TypeVar("View", bound=Callable[..., object])


def action(
    *, description: str | Promise, permissions: Sequence[str], url_path: str | None = None
) -> Callable[[View], View]:
    """Make a method of a page the view of a button, for those with one of the permissions."""
    decorate: Callable[[View], View] = decorators.action(
        description=description, permissions=permissions, url_path=url_path
    )
    return decorate
