"""A language for tests: each string of a catalogue stands in brackets."""

import re
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import allauth
import django
from babel import Locale
from babel.messages.catalog import Catalog
from django.apps import apps
from django.db.models import CharField, JSONField, TextField
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.text import capfirst

from docs import words
from messaging.console import wording
from messaging.domain.policy import MARKETING, TRANSACTIONAL
from messaging.models import Category

LANGUAGE = "en-zz"
OPEN, CLOSE = "⟦", "⟧"
QUOTED = {"script", "style", "code", "pre", "kbd", "samp", "textarea", "svg", "template"}
"""Elements whose text is meant for programs, or was written by a person."""
INLINE = {"a", "abbr", "b", "code", "em", "i", "kbd", "span", "strong", "time"}
"""Elements within a sentence."""
ICON = "material-symbols-outlined"
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
ATTRIBUTES = {"title", "placeholder", "aria-label", "aria-description", "alt", "label", "summary"}
WORD = re.compile(
    r"(?<![\w@./:#+%{-])(?!rme\b)[A-Za-zÀ-ž][a-zÀ-ž]+(?:['’][a-z]+)?(?![\w@/:}]|[.-]\w)"
)
"""A word of a language; names of fields, files and hosts, abbreviations and rme are none."""
SENTENCE = re.compile(r"[A-Z][a-z]+ [a-z]")


def install(folder: Path) -> None:
    """Write the language into a folder, which LOCALE_PATHS should name."""
    path = folder / translation.to_locale(LANGUAGE) / "LC_MESSAGES" / "django.mo"
    path.parent.mkdir(parents=True)
    path.write_bytes(words.mo_text(catalogue()))


def catalogue() -> Catalog:
    """Return the catalogues of the console, of Django and of django-allauth, with brackets."""
    bracketed = Catalog(locale="en")
    packages = (Path(package.__file__ or "").parent for package in (allauth, django))
    theirs = (path for each in packages for path in each.rglob("locale/en/LC_MESSAGES/django.po"))
    for path in (*theirs, words.po_of("en")):
        for message in words.read(path):
            if message.id:
                texts = [message.id] if isinstance(message.id, str) else list(message.id)
                shown = [_bracketed(text) for text in texts]
                bracketed.add(
                    message.id,
                    shown[0] if len(shown) == 1 else tuple(shown),
                    context=message.context,
                )
    return bracketed


def _bracketed(text: str) -> str:
    parts = text.split(",") if text == "yes,no,maybe" else [text]
    return ",".join(f"{OPEN}{each}{CLOSE}" for each in parts)


def middleware(get_response: Callable[[HttpRequest], HttpResponse]) -> Any:
    """Show the pages of a browser in the language: the last of BROWSER_MIDDLEWARE."""

    def answer(request: HttpRequest) -> HttpResponse:
        with translation.override(LANGUAGE):
            return get_response(request)

    return answer


class Page(HTMLParser):
    """The texts and the attributes of a page that a person reads or hears."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[tuple[str, bool]] = []
        """The open elements, and whether the text of each is no words for people to translate."""
        self.texts: list[str] = []
        self.depth = 0
        """How many brackets are open: a sentence may go on within a link."""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if not self.is_quoted:
            self.texts += [value for name, value in values.items() if name in ATTRIBUTES]
            if tag == "input" and values.get("type") in ("submit", "button", "reset"):
                self.texts.append(values.get("value", ""))
            told = (value for name, value in values.items() if name.startswith("data-"))
            self.texts += [value for value in told if SENTENCE.match(outside(value))]
        if tag not in VOID:
            is_icon = ICON in values.get("class", "")  # its text is the name of a picture
            is_quoted = tag in QUOTED or is_icon or values.get("translate") == "no"
            self.open.append((tag, is_quoted))

    def handle_endtag(self, tag: str) -> None:
        if tag not in INLINE:
            self.depth = 0
        if any(tag == name for name, _ in self.open):
            while self.open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self.is_quoted:
            self.texts.append(OPEN * self.depth + data)
        self.depth = max(0, self.depth + data.count(OPEN) - data.count(CLOSE))

    @property
    def is_quoted(self) -> bool:
        return any(quoted for _, quoted in self.open)


def outside(text: str) -> str:
    """Return a text without what stands in brackets, which may be nested."""
    depth, parts = 0, [""]
    for part in re.split(f"([{OPEN}{CLOSE}])", text):
        if part == OPEN:
            depth += 1
            parts.append("")
        elif part == CLOSE:
            if not depth:
                parts[-1] = ""  # the page has cut the text's beginning off
            depth = max(0, depth - 1)
        elif not depth:
            parts[-1] += part
    return "\0".join(parts)


def unmarked(html: str) -> list[str]:
    """Return the texts of a page that have words outside of brackets."""
    texts = dict.fromkeys(" ".join(text.split()) for text in Page(html).texts)
    return [text for text in texts if WORD.search(outside(text))]


def without_data(texts: Iterable[str]) -> list[str]:
    """Return the texts that have words outside of brackets which no row and no CLDR name has."""
    data = data_pattern([*stored(), *names()])
    shown = [
        text for text in texts if "****" not in text
    ]  # the salt of a password, as Django has it
    return [text for text in shown if WORD.search(data.sub("", outside(text)))]


def names() -> Iterator[str]:
    """Yield the names of languages and countries, which CLDR has in all languages, those of
    categories, which are made of what the database holds, and those of other packages' tables.
    """
    for model in apps.get_models():
        if model.__module__.partition(".")[0] not in words.CODE:
            meta = model._meta
            texts = (meta.app_config.verbose_name, meta.verbose_name, meta.verbose_name_plural)
            yield from map(str, texts)
    stored_names = Category.objects.values_list("name", flat=True)
    yield from map(wording.category, (TRANSACTIONAL, MARKETING, *stored_names))
    english = Locale("en")
    yield from english.languages.values()
    yield from english.territories.values()


def stored() -> Iterator[str]:
    """Yield the texts of all rows of the database."""
    for model in apps.get_models():
        if model._meta.app_label in ("contenttypes", "sessions"):
            continue
        fields = [
            each.attname for each in model._meta.concrete_fields
            if isinstance(each, CharField | TextField | JSONField)
        ]  # fmt: skip
        for row in model._default_manager.values_list(*fields):
            yield from _leaves(row)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _leaves(list(value))
        yield from _leaves(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)


def data_pattern(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of whole texts that are data, also where a page begins them with a capital
    letter.
    """
    whole = {" ".join(each.split()) for each in texts if len(each) > 2}
    ordered = sorted(whole | {capfirst(each) for each in whole}, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?!\w)")
