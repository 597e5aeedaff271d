"""The style guide: every part of the console's pages with its states and the code that draws it.

Its page exists in DEBUG alone. Each example is a template in templates/components/examples/; the
page shows what it draws, and its source.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from types import SimpleNamespace as Sample
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import get_template

from rme.components import list_tags, tables, tags
from rme.components.tables import Cell, Column, Table, Target
from rme.core.db import clock

EXAMPLES = {
    "page_head": "Page head",
    "button": "Buttons and chips",
    "pill": "Status pill",
    "banner": "Banner",
    "toast": "Toast",
    "stat_tile": "Stat tile",
    "spark": "Line and bars of hours",
    "dialog": "Dialog",
    "ask_link": "Question over a page",
    "empty_state": "Empty state",
    "timeline": "Timeline",
    "facts": "Names and values",
    "moment": "Times",
    "code_block": "Code to copy",
    "stepper": "Stepper",
    "tabs": "Tabs",
    "form_row": "Form row",
    "combobox": "Search while typing",
    "skeleton": "Skeleton",
    "filter_bar": "Filters of a list",
    "data_table": "Table of a list",
}
"""The titles of the examples, by the names of their templates."""
COLOURS = (
    *("surface", "sunken", "hover", "pressed", "accent"),
    *("good", "info", "warn", "bad", "idle"),
)


SUGGESTIONS = [
    {"typed": f"{name.lower()}@example.com", "name": name, "address": f"{name.lower()}@example.com"}
    for name in ("Olivia", "Oscar")
]


class SampleForm(forms.Form):
    """A form with each kind of field, help and an error."""

    person = forms.CharField(help_text="An email address, a phone number or a name.")
    reason = forms.CharField(max_length=500)
    channel = forms.ChoiceField(choices=[("EMAIL", "Email"), ("SMS", "SMS")])
    note = forms.CharField(widget=forms.Textarea, required=False)
    is_shared = forms.BooleanField(label="Share with the team", required=False)


@dataclass(frozen=True, slots=True)
class Example:
    """A part with the code that draws it."""

    name: str
    title: str
    purpose: str
    source: str
    html: str

    @property
    def code_id(self) -> str:
        return f"{self.name}-code"


def show(request: HttpRequest) -> HttpResponse:
    """Return the page of all parts; with `q`, what its field for a person suggests."""
    if "q" in request.GET:
        return JsonResponse({"contacts": SUGGESTIONS})
    context = {
        **admin.site.each_context(request),
        "title": "Style guide",
        "examples": [_example(name, title, request) for name, title in EXAMPLES.items()],
        "colours": COLOURS,
    }
    return render(request, "components/style_guide.html", context)


def _example(name: str, title: str, request: HttpRequest) -> Example:
    template = get_template(f"components/examples/{name}.html")
    source: str = template.template.source  # type: ignore[attr-defined]  # of Django's own engine
    purpose = getattr(tags, name, None) or getattr(list_tags, name, None)
    text = (purpose.__doc__ or "").partition("\n")[0] if purpose else ""
    return Example(name, title, text, source.strip(), template.render(_samples(), request))


def _table(now: datetime) -> Table:
    """Return a table with a link, a note, states and times."""
    columns: list[Column[Any]] = [
        Column("who", "Recipient", lambda line: Cell(line.name, line.email), "wide"),
        Column("status", "Status", lambda line: Cell(line.status, colour=line.colour)),
        Column("sent", "Sent", lambda line: Cell(at=line.at), "small"),
        Column("provider", "Provider", lambda line: Cell("Postmark"), is_shown=False),
    ]
    olivia = Sample(name="Olivia", email="olivia@example.com", status="Delivered", colour="good")
    lines = [
        Sample(**vars(olivia), at=now - timedelta(minutes=4)),
        Sample(name="Adam", email="adam@example.com", status="Failed", colour="bad", at=now),
    ]
    return tables.build(
        *("Messages", columns, lines),
        lambda line: Target("#data_table", f"message to {line.name}", line.at, line.name),
        ticks="row",
    )


def _samples() -> dict[str, object]:
    now = clock.now()
    hours = [f"{hour:02}:00" for hour in range(24)]
    values = [(7 * hour) % 17 for hour in range(24)]
    line = Sample(
        current=" ".join(f"{10 * place},{31 - value}" for place, value in enumerate(values)),
        before=" ".join(f"{10 * place},{15 - value % 5}" for place, value in enumerate(values)),
        box="0 0 230 32",
        texts="\n".join(f"{at}: {value}" for at, value in zip(hours, values, strict=True)),
    )
    bars = [
        Sample(x=10 * place, y=4, height=28, colour=("good", "warn", "bad", "none")[place % 4])
        for place in range(24)
    ]
    tile = Sample(title="Accepted", text="12,480", change="+4%", note="", url="#stat_tile")
    return {
        "now": now,
        "earlier": now - timedelta(minutes=4),
        "yesterday": now - timedelta(days=1, hours=2),
        "form": SampleForm({"person": "Olivia", "channel": "EMAIL"}),
        "dialog_form": SampleForm(prefix="dialog"),
        "search_form": SampleForm(prefix="search"),
        "line": line,
        "bars": Sample(bars=bars, box="0 0 240 32", width=8, texts="\n".join(hours)),
        "tiles": [
            Sample(**vars(tile) | {"comparison": "12,000 a week before", "chart": line}),
            Sample(**vars(tile) | {"title": "Waiting", "text": "4", "change": ""}),
        ],
        "moments": [
            Sample(at=now, title="Opened", text="", colour="good"),
            Sample(at=now - timedelta(minutes=1), title="Opened", text="", colour="good"),
            Sample(at=now - timedelta(minutes=2), title="Delivered", text="", colour="good"),
            Sample(at=now - timedelta(minutes=3), title="Sent", text="by Postmark", colour="info"),
            Sample(at=now - timedelta(minutes=4), title="Retried", text="busy", colour="warn"),
            Sample(
                at=now - timedelta(minutes=5), title="Bounced", text="no such box", colour="bad"
            ),
            Sample(at=now - timedelta(minutes=6), title="Accepted", text="", colour="muted"),
        ],
        "table": _table(now),
        "filters": Sample(
            search=SampleForm(auto_id="filter_%s")["person"],
            chips=[Sample(label="Status", text="Failed", query="", error=False)],
            menu=[SampleForm(auto_id="filter_%s")["channel"]],
            query="status=FAILED",
        ),
        "payload": '{\n  "type": "message.delivered",\n  "id": "0199"\n}',
        "steps": ["File", "Columns", "Check", "Import"],
        "links": [
            Sample(title="Providers", url="#tabs", is_current=True),
            Sample(title="Callback log", url="#tabs", is_current=False),
        ],
    }
