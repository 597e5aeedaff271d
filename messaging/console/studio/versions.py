"""The history of a piece: its versions, and which variables each began or ceased to use."""

from collections.abc import Sequence
from dataclasses import dataclass

from messaging.content import drafts, rendering, samples, templates
from messaging.models import Template, TemplateVersion

SHOWN = 20
LONGEST = 300_000
"""Characters of all texts of the versions whose variables are looked up, newest first."""
_OURS = frozenset({"contact", "org", "sender", "record", "unsubscribe_url"})


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """A version, and what it changed in the variables."""

    row: TemplateVersion
    began: Sequence[str]
    ceased: Sequence[str]
    previous: int | None
    """The number of the version before it."""

    @property
    def can_return(self) -> bool:
        """Return whether it was active and is no more."""
        return self.row.state == TemplateVersion.State.ARCHIVED


def history(template: Template) -> list[HistoryLine]:
    """Return the newest versions, newest first; one query, and one for partials."""
    rows = list(template.versions.order_by("-version")[: SHOWN + 1])
    used: list[frozenset[str] | None] = []
    left = LONGEST
    for row in rows:
        row.template = template
        left -= sum(len(str(text)) for text in drafts.texts_of(row).values())
        used.append(variables(row) if left > 0 else None)
    found = []
    for index, row in enumerate(rows[:SHOWN]):
        own = used[index]
        before = used[index + 1] if index + 1 < len(rows) else None
        known = own is not None and before is not None
        began = sorted((own or frozenset()) - (before or frozenset())) if known else []
        ceased = sorted((before or frozenset()) - (own or frozenset())) if known else []
        previous = rows[index + 1].version if index + 1 < len(rows) else None
        found.append(HistoryLine(row, began, ceased, previous))
    return found


def variables(row: TemplateVersion) -> frozenset[str] | None:
    """Return the variables that a version's texts use; None if they do not parse."""
    try:
        names = templates.compile_version(row).compiled.names
    except rendering.TemplateSyntax:
        return None
    return frozenset(each for each in names if each) - _OURS


def completion(organization_id: str) -> dict[str, object]:
    """Return what the editor completes besides the variables of the schema."""
    person = samples.PERSON
    return {
        "filters": list(rendering.FILTERS),
        "tags": sorted(name for name in rendering.TAGS if name.isalpha() and name not in _INNER),
        "partials": sorted(templates.partials(organization_id)),
        "members": {
            "contact": [*(each for each in person._fields if each in _CONTACT), "name"],
            "org": ["id", "name", "brand_color"],
            "sender": ["domain", "local_part", "name"],
            "record": ["type", "id", "created_at"],
        },
        "names": ["unsubscribe_url"],
    }


_CONTACT = ("id", "first_name", "last_name", "email", "mobile", "language", "zone")
_INNER = ("content", "illegal", "output")
