"""Every route of the deployment, as an address that leads to it."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.urls import URLPattern, get_resolver

_EXAMPLES = {"uuid": "01a1fb37-a4a4-7470-9fc2-6927566e64b5", "int": "1"}
_REGEXES = {"^(?P<app_label>": "crm/", "(?P<url>.*)$": "nowhere", "^": ""}


Fill = Callable[[str, str, str], str]
"""Returns the value of a parameter by the route before it, its kind, and its name."""


def _any_value(_prefix: str, kind: str, _name: str) -> str:
    return _EXAMPLES.get(kind, "1")


def _example(prefix: str, pattern: Any, fill: Fill) -> str:
    """Write an address that fits a part of a route."""
    route = str(pattern)
    for start, written in _REGEXES.items():
        if route.startswith(start):
            return written
    return re.sub(
        r"<(?:(\w+):)?(\w+)>",
        lambda found: fill(prefix + route[: found.start()], str(found[1]), found[2]),
        route,
    )


def every_route(patterns: Any = None, prefix: str = "/", fill: Fill = _any_value) -> Iterator[str]:
    """Yield an address for each route."""
    for each in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + _example(prefix, each.pattern, fill)
        if isinstance(each, URLPattern):
            yield path
        else:
            yield from every_route(each.url_patterns, path, fill)
