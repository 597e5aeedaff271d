"""Every route of the deployment, as an address that leads to it."""

import re
from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, get_resolver

_EXAMPLES = {"uuid": "01a1fb37-a4a4-7470-9fc2-6927566e64b5", "int": "1"}
_REGEXES = {"^(?P<app_label>": "crm/", "(?P<url>.*)$": "nowhere", "^": ""}


def _example(pattern: Any) -> str:
    """Write an address that fits a part of a route."""
    route = str(pattern)
    for start, written in _REGEXES.items():
        if route.startswith(start):
            return written
    return re.sub(r"<(?:(\w+):)?\w+>", lambda found: _EXAMPLES.get(str(found[1]), "1"), route)


def every_route(patterns: Any = None, prefix: str = "/") -> Iterator[str]:
    """Yield an address for each route."""
    for each in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + _example(each.pattern)
        if isinstance(each, URLPattern):
            yield path
        else:
            yield from every_route(each.url_patterns, path)
