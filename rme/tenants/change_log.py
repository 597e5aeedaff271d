"""Reading the admin's log of former releases. Since then the audit has what people do."""

import json

from django.contrib.admin.models import LogEntry


def describe(entry: LogEntry) -> list[str]:
    """Return a log entry as lines for people, like `name: Ada → Grace`."""
    try:
        parts = json.loads(entry.change_message or "[]")
    except ValueError:
        return []
    lines = []
    for part in parts if isinstance(parts, list) else []:
        lines += [
            f"{name}: {before or '–'} → {after or '–'}"
            for name, (before, after) in part.get("values", {}).items()
        ]
        if "reason" in part:
            lines.append(f"reason: {part['reason']}")
    return lines
