"""Values of the environment: switches, lists, numbers and the service's own URL.

Raises ImproperlyConfigured with the name of the variable and the remedy.
"""

import math
from collections.abc import Mapping
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


class Values:
    """The environment, read by type."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a switch: 1, true, yes and on mean True."""
        return self.env.get(name, str(default)).strip().lower() in {"1", "true", "yes", "on"}

    def words(self, name: str, default: str = "") -> list[str]:
        """Return a list: words between commas."""
        return [word.strip() for word in self.env.get(name, default).split(",") if word.strip()]

    def integer(self, name: str, default: int) -> int:
        """Return a whole number, which is not negative."""
        text = self.env.get(name, str(default)).strip()
        if not (text.isascii() and text.isdecimal()):
            raise ImproperlyConfigured(f"{name}={text} is not a whole number, such as {default}.")
        return int(text)

    def number(self, name: str, default: float) -> float:
        """Return a number, which is neither negative nor infinite."""
        text = self.env.get(name, str(default)).strip()
        value = _number(text)
        if value is None:
            raise ImproperlyConfigured(f"{name}={text} is not a number, such as {default:g}.")
        return value

    def numbers(self, name: str, default: str) -> tuple[float, ...]:
        """Return a list of numbers between commas."""
        values = [_number(word) for word in self.words(name, default)]
        if None in values:
            raise ImproperlyConfigured(
                f"{name}={self.env[name]} is not a list of numbers, such as {default}."
            )
        return tuple(value for value in values if value is not None)

    def base_url(self, name: str, default: str) -> str:
        """Return a URL of scheme, host and port, without a slash at the end."""
        text = self.env.get(name, default)
        url = text.rstrip("/")
        try:
            parts = urlsplit(url)
            is_right = parts.scheme in {"http", "https"} and bool(parts.hostname)
            _ = parts.port
        except ValueError:  # the port is no number
            is_right = False
        if not is_right:
            raise ImproperlyConfigured(
                f"{name}={text} is not a URL: write scheme and host, such as "
                "https://messages.example.com."
            )
        if parts.path or parts.query or parts.fragment:
            raise ImproperlyConfigured(
                f"{name}={text} has a path, which rme can't be served under: leave it out."
            )
        return url


def _number(text: str) -> float | None:
    """Return a number from 0; None if the text is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
