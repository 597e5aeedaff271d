"""Counting the codes that a provider's tables lack, for /metrics: they must be looked up."""

import re

from rme.core.telemetry.meters import Counter

CODES = Counter(
    "rme_unknown_report_codes_total",
    "Codes of receipts that no table of a provider lists.",
    ["provider", "code"],
)
LIMIT = 100
"""Codes of a process that have their own series; all others share one."""
OTHER = "other"
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,32}")

_seen: set[tuple[str, str]] = set()


def count(kind: str, code: str) -> None:
    """Count a code of a kind of provider."""
    if not _PLAIN.fullmatch(code) or ((kind, code) not in _seen and len(_seen) >= LIMIT):
        code = OTHER
    else:
        _seen.add((kind, code))
    CODES.add(kind, code)
