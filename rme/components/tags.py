"""The template tags of the console's parts; the style guide shows each with its states."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Protocol

from django import template
from django.contrib.messages.storage.base import Message
from django.forms import BoundField
from django.template.context import Context
from django.template.loader import get_template
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from rme.core.db import clock

register = template.Library()
FOLDER = "components/"
ICONS = {"good": "check_circle", "info": "schedule", "warn": "warning", "bad": "error"}
"""The icons of states in a timeline."""
NOTICE_COLOURS = {"success": "good", "warning": "warn", "error": "bad"}
"""The colours of Django's messages, by level."""


class TimelineEntry(Protocol):
    """An entry of a timeline."""

    @property
    def at(self) -> datetime: ...
    @property
    def title(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def colour(self) -> str: ...


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """Entries of a timeline that follow each other and say the same; their links may differ."""

    entries: Sequence[TimelineEntry]

    @property
    def first(self) -> TimelineEntry:
        """Return the one that the timeline shows first."""
        return self.entries[0]

    @property
    def earliest(self) -> datetime:
        return min(each.at for each in self.entries)

    @property
    def latest(self) -> datetime:
        return max(each.at for each in self.entries)

    @property
    def links_differ(self) -> bool:
        """Return whether each entry leads to a page of its own."""
        return any(_links_of(each) != _links_of(self.first) for each in self.entries)

    @property
    def icon(self) -> str:
        """Return the name of the icon of their state."""
        return ICONS.get(self.first.colour, "radio_button_unchecked")


def _part(part: str, /, **values: object) -> str:
    """Return a part that has content of the page in it."""
    return get_template(f"{FOLDER}{part}.html").render(values)


@register.simple_block_tag
def page_head(content: str, title: str, subtitle: str = "") -> str:
    """Draw the title of a page; the content is its buttons, the primary one last."""
    return _part("page_head", content=content, title=title, subtitle=subtitle)


@register.simple_block_tag
def more(content: str, id: str, label: str = "") -> str:
    """Draw the button of a menu; the content is its `<li>` elements."""
    return _part("more", content=content, id=id, label=label or _("More actions"))


@register.inclusion_tag(f"{FOLDER}pill.html")
def pill(text: object, colour: str = "muted") -> dict[str, object]:
    """Draw a state: green for good, blue for under way, amber, red, or grey."""
    return {"text": text, "colour": colour}


@register.inclusion_tag(f"{FOLDER}stat_tile.html")
def stat_tile(tile: object) -> dict[str, object]:
    """Draw a figure with its comparison and its line."""
    return {"tile": tile}


@register.inclusion_tag(f"{FOLDER}spark.html")
def spark(chart: object, label: str) -> dict[str, object]:
    """Draw a line or bars of hours; the pointer or the arrow keys choose the hour to tell."""
    return {"chart": chart, "label": label}


@register.simple_block_tag
def dialog(
    content: str,
    id: str,
    title: str,
    *,
    button: str = "",
    style: str = "",
    name: str = "",
    is_open: object = False,
) -> str:
    """Draw a button that opens a dialog; the content is the dialog's form.

    `name` tells the button from others. With `is_open` the page shows the dialog at once, such as
    after an error in its form.
    """
    values = {"button": button, "style": style, "name": name, "is_open": is_open}
    return _part("dialog", content=content, id=id, title=title, **values)


@register.inclusion_tag(f"{FOLDER}ask_link.html")
def ask_link(url: str, text: str, style: str = "", name: str = "") -> dict[str, object]:
    """Draw a button whose page asks something; the question opens over this page."""
    return {"url": url, "text": text, "style": style, "name": name}


@register.simple_block_tag
def banner(content: str, colour: str = "info") -> str:
    """Draw what concerns the whole page."""
    return _part("banner", content=content, colour=colour)


@register.inclusion_tag(f"{FOLDER}toast.html")
def toast(text: object, colour: str = "good") -> dict[str, object]:
    """Draw what has just been done."""
    return {"text": text, "colour": colour}


@register.inclusion_tag(f"{FOLDER}notices.html")
def notices(messages: Iterable[Message] = ()) -> dict[str, object]:
    """Draw Django's messages: a success as a toast, any other as a banner."""
    return {
        "notices": [(NOTICE_COLOURS.get(each.level_tag, "info"), each) for each in messages or ()]
    }


@register.inclusion_tag(f"{FOLDER}empty_state.html")
def empty_state(icon: str, text: str, url: str = "", button: str = "") -> dict[str, object]:
    """Draw what stands in the place of an empty list: a sentence and the way on."""
    return {"icon": icon, "text": text, "url": url, "button": button}


@register.inclusion_tag(f"{FOLDER}timeline.html", takes_context=True)
def timeline(context: Context, entries: Iterable[TimelineEntry]) -> dict[str, object]:
    """Draw entries in their order; equal ones that follow each other are one."""
    return {"groups": grouped(entries), "organization": context.get("organization")}


def grouped(entries: Iterable[TimelineEntry]) -> list[EntryGroup]:
    """Return entries of a timeline, with equal neighbours as one."""
    return [EntryGroup([*equal]) for _words, equal in groupby(entries, key=_words_of)]


def _words_of(entry: TimelineEntry) -> tuple[str, str, str]:
    return entry.title, entry.text, entry.colour


def _links_of(entry: TimelineEntry) -> Sequence[object]:
    links: Sequence[object] = getattr(entry, "links", ())
    return links


@register.simple_block_tag
def facts(content: str, label: str = "") -> str:
    """Draw a list of names and values; the content is `{% fact %}` tags."""
    return _part("facts", content=content, label=label)


@register.simple_block_tag
def fact(content: str, name: str) -> str:
    """Draw a name with its value, which is the content."""
    return _part("fact", content=content, name=name)


@register.inclusion_tag(f"{FOLDER}code_block.html")
def code_block(id: str, text: str, name: str = "") -> dict[str, object]:
    """Draw a text as it is, with a button that copies it; `name` tells the button from others."""
    return {"id": id, "text": text, "name": name}


@register.inclusion_tag(f"{FOLDER}copy_value.html")
def copy_value(id: str, text: object, name: str = "") -> dict[str, object]:
    """Draw a value within a line, with a button that copies it."""
    return {"id": id, "text": text, "name": name}


@register.inclusion_tag(f"{FOLDER}stepper.html")
def stepper(titles: Sequence[str], current: int) -> dict[str, object]:
    """Draw the steps of a task; `current` counts from 1."""
    return {"titles": titles, "current": current}


@register.inclusion_tag(f"{FOLDER}tabs.html")
def tabs(links: Sequence[object], label: str) -> dict[str, object]:
    """Draw links (title, url, is_current) to pages that belong together."""
    return {"links": links, "label": label}


@register.inclusion_tag(f"{FOLDER}form_row.html")
def form_row(field: BoundField) -> dict[str, object]:
    """Draw a field with its label, its help and its errors."""
    return {"field": field}


@register.inclusion_tag(f"{FOLDER}form_rows.html")
def form_rows(form: object) -> dict[str, object]:
    """Draw the errors of a form and all of its fields."""
    return {"form": form}


@register.inclusion_tag(f"{FOLDER}form_row.html")
def combobox(field: BoundField, url: str) -> dict[str, object]:
    """Draw a field that suggests what the address answers to the typed text.

    The answer is JSON: `contacts` with `typed` (what the field takes), `name` and `address`.
    """
    field.field.widget.attrs["data-suggests"] = url
    return {"field": field}


@register.inclusion_tag(f"{FOLDER}skeleton.html")
def skeleton(rows: int = 5) -> dict[str, object]:
    """Draw the place of rows that are loading."""
    return {"rows": range(rows)}


@register.inclusion_tag(f"{FOLDER}moment.html", takes_context=True)
def moment(context: Context, at: datetime) -> dict[str, object]:
    """Draw a time, in the zone of the page's organization."""
    return {"at": at, "organization": context.get("organization")}


@register.inclusion_tag(f"{FOLDER}ago.html")
def ago(at: datetime) -> dict[str, object]:
    """Draw how long ago a time was, or how soon it comes; the time itself on hover."""
    return {"at": at, "text": distance(at, clock.now())}


def distance(at: datetime, now: datetime) -> str:
    """Return a time as people say it: by its distance from now, on other days by its date."""
    seconds = (now - at).total_seconds()
    minutes = round(abs(seconds) / 60)
    if minutes < 1:
        return _("just now") if seconds >= 0 else _("in a moment")
    if minutes < 60:
        amount = _("%(number)s min") % {"number": minutes}
    elif abs(seconds) < timedelta(days=1).total_seconds():
        amount = _("%(number)s h") % {"number": round(minutes / 60)}
    else:
        local = localtime(at)
        return date_format(local, "j M, H:i" if local.year == localtime(now).year else "j M Y")
    return (_("%(time)s ago") if seconds > 0 else _("in %(time)s")) % {"time": amount}
