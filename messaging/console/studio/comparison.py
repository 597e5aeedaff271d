"""Two versions of a variant, field by field: side by side, or without scripts as a difference."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import orjson
from django import forms
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.studio import live, variants
from messaging.console.studio.wording import FIELD_LABELS, LANGUAGES, SCRIPT_WORDS
from messaging.content import drafts
from messaging.models import Template, TemplateVersion
from rme.tenants.access.roles import Permission

OFFERED = 500
"""The most versions that the form offers, the newest ones."""
LINES = 4_000
"""The most lines of a text that are compared without scripts: the time grows with their square."""
Kind = Literal["same", "added", "removed", "place"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a unified difference."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A text that differs between two versions."""

    name: str
    label: str
    language: str
    old: str
    new: str
    lines: Sequence[DiffLine]
    """The unified difference; empty if the texts are too long for it."""


STATES = {
    "DRAFT": gettext_lazy("draft"),
    "ACTIVE": gettext_lazy("active"),
    "ARCHIVED": gettext_lazy("archived"),
}
"""The states of a version in words, by their code."""


class ComparisonForm(forms.Form):
    """The two versions that are compared. They begin with what was changed last."""

    def __init__(self, choices: Sequence[tuple[int, str]], data: QueryDict) -> None:
        numbers = [number for number, _ in choices]
        newest = numbers[0] if numbers else 0
        active = next((number for number, state in choices if state == "ACTIVE"), newest)
        previous = active if active != newest else next(iter(numbers[1:]), newest)
        values = {"old": data.get("old", str(previous)), "new": data.get("new", str(newest))}
        super().__init__(values, auto_id="compare_%s", label_suffix="")
        words = _("Version {number}, {state}")
        offered = [
            (number, words.format(number=number, state=STATES[state])) for number, state in choices
        ]
        error_messages = {"invalid_choice": _("Version %(value)s doesn't exist.")}
        for name, label in (("old", _("From")), ("new", _("To"))):
            self.fields[name] = forms.TypedChoiceField(
                choices=offered, coerce=int, label=label, error_messages=error_messages
            )


@access.page_for(Permission.SEE_TEMPLATES)
@require_GET
def show(request: HttpRequest, viewer: Viewer, name: str) -> HttpResponseBase:
    """Return the page that compares two versions of a variant."""
    template = live.template_of(request, viewer, name)
    rows = template.versions.order_by("-version").values_list("version", "state")
    form = ComparisonForm(list(rows[:OFFERED]), request.GET)
    differences: list[FieldDifference] = []
    equal_labels: list[str] = []
    numbers = {"old": 0, "new": 0}
    can_return = False
    if form.is_valid():
        numbers = form.cleaned_data
        pair = {row.version: row for row in template.versions.filter(version__in=numbers.values())}
        old_version = pair[numbers["old"]]
        differences, equal_labels = _compared(template, old_version, pair[numbers["new"]])
        can_return = old_version.state == TemplateVersion.State.ARCHIVED
    names = ("name", "label", "language", "old", "new")
    fields = [{name: getattr(each, name) for name in names} for each in differences]
    return access.show(
        request,
        viewer,
        "studio/compare",
        _("Compare versions of {template}").format(template=name),
        variant=template,
        back=variants.url_of(template),
        back_name=variants.name_of(template),
        form=form,
        chosen=numbers,
        fields=differences,
        same=equal_labels,
        can_return=can_return and viewer.may(Permission.PUBLISH_TEMPLATES),
        comparison={**numbers, "fields": fields, "words": SCRIPT_WORDS},
    )


def _compared(
    template: Template, old: TemplateVersion, new: TemplateVersion
) -> tuple[list[FieldDifference], list[str]]:
    """Return the texts that differ, and the labels of those that do not."""
    old_texts, new_texts = _texts(template, old), _texts(template, new)
    labels = {name: str(FIELD_LABELS.get(name, name.capitalize())) for name in new_texts}
    differences = [
        FieldDifference(
            name,
            label,
            LANGUAGES.get(name, ""),
            old_texts[name],
            new_texts[name],
            tuple(difference(old_texts[name], new_texts[name])),
        )
        for name, label in labels.items()
        if old_texts[name] != new_texts[name]
    ]
    equal_labels = [
        label
        for name, label in labels.items()
        if old_texts[name] == new_texts[name] and new_texts[name]
    ]
    return differences, equal_labels


def _texts(template: Template, row: TemplateVersion) -> dict[str, str]:
    """Return the texts of a version as lines; JSON with one value a line."""
    texts = drafts.texts_of(row)
    return {
        name: _text(texts[name]) for name in (*drafts.BY_CHANNEL[template.channel], "variables")
    }


def _text(value: object) -> str:
    if isinstance(value, dict):
        options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
        return orjson.dumps(value, option=options).decode() if value else ""
    return "" if value is None else str(value).replace("\r\n", "\n")


def difference(old: str, new: str) -> Iterator[DiffLine]:
    """Yield the unified difference of two texts; nothing of texts that are too long."""
    old_lines, new_lines = old.split("\n") if old else [], new.split("\n") if new else []
    if max(len(old_lines), len(new_lines)) > LINES:
        return
    kinds: dict[str, Kind] = {"+": "added", "-": "removed", "@": "place", " ": "same"}
    # The first two lines name files.
    for line in list(difflib.unified_diff(old_lines, new_lines, lineterm="", n=3))[2:]:
        yield DiffLine(kinds[line[0]], line)
