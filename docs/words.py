"""`make words`: write the strings of the console into locale/, and compile its languages.

`locale/en` lists every string that code, templates and the theme mark for translation.
`locale/en_US` has our words for those of other packages, and is written by hand. Every other
folder is a language, such as `locale/de`: `make words ARGS=de` begins one.
"""

import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import django
from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract, extract_python
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.apps import apps
from django.contrib import admin
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
LOCALES = ROOT / "locale"
CODE = ("rme", "messaging", "push", "bot")
KEYWORDS = DEFAULT_KEYWORDS | {
    "gettext_lazy": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "gettext_noop": None,
    "sentence": None,
    "counted": (1, 2),
    "translatable": None,
}
"""Functions that mark a string; the last ones are those of modules without Django."""
SKIPPED = {"migrations", "contrib"}
"""Folders without marked strings, and those of the theme's parts that rme doesn't use."""
HINT = "Translators:"
"""How a comment begins that a translator should see."""


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")
NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)
"""In the place of the time of writing, so that the same catalogue makes the same file."""


def po_of(language: str) -> Path:
    """Return the catalogue of a language."""
    return LOCALES / language / "LC_MESSAGES" / "django.po"


def package(name: str) -> Path:
    """Return the folder of an installed package."""
    spec = find_spec(name)
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def sources() -> Iterator[tuple[str, Path]]:
    """Yield the files that may mark strings, each with its name in the catalogue."""
    theme = package("unfold")  # it brings no catalogue of its own
    folders = [*(ROOT / name for name in ("templates", *CODE)), theme]
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder.parent)
            if path.suffix in (".html", ".py") and SKIPPED.isdisjoint(name.parts):
                yield name.as_posix(), path


def template_strings(
    file: BinaryIO, keywords: Any, comment_tags: Any, options: Any
) -> Iterator[Any]:
    """Yield the strings that a template marks: a method of extraction, as Babel calls it."""
    code = templatize(file.read().decode())
    lines = "\n".join(line.lstrip() for line in code.splitlines())
    yield from extract_python(BytesIO(lines.encode()), keywords, comment_tags, options)


def read(path: Path, language: str | None = None) -> Catalog:
    """Return a catalogue that a file holds; an empty one if there is no file."""
    if not path.exists():
        return Catalog(locale=language)
    with path.open("rb") as file:
        return read_po(file, locale=language)


def words_of_django() -> set[str]:
    """Return the strings that Django's catalogues have, in all its languages."""
    paths = package("django").glob("**/locale/en/LC_MESSAGES/django.po")
    return {key(message.id) for path in paths for message in read(path) if message.id}


def key(text: Any) -> str:
    """Return a message, or the singular of one that has a plural."""
    return text if isinstance(text, str) else text[0]


def names() -> Iterator[tuple[str, str]]:
    """Yield texts that pages take from other places in the code, each with the file of its class:
    the names of tables, of columns that pages show, and of providers and CRMs with their settings.
    """
    django.setup()
    models = [each for each in apps.get_models() if each.__module__.partition(".")[0] in CODE]
    for model in models:  # the audit names any of them
        yield file_of(model), str(model._meta.verbose_name)
    pages = admin.site._registry.values()
    shown = {model for page in pages for model in (page.model, *(i.model for i in page.inlines))}
    for model in sorted(shown.intersection(models), key=lambda each: each._meta.label):
        meta = model._meta
        named: tuple[Any, ...] = (meta, *meta.local_fields, *meta.local_many_to_many)
        for name in (meta.verbose_name_plural, *(each.verbose_name for each in named)):
            yield file_of(model), str(name)
    providers = import_module("messaging.providers").REGISTRY.values()
    for kind in (*providers, *import_module("rme.crm.connectors").REMOTE.values()):
        settings = kind.Settings.model_fields
        helps = (each.description for each in settings.values())
        labels = (name.replace("_", " ") for name in settings)
        for text in (kind.label, getattr(kind, "callback_help", ""), *labels, *helps):
            if text:
                yield file_of(kind), text
    form = import_module("rme.crm.admin.platform_form")
    for kind in import_module("rme.crm.mapping").KINDS:
        for name in form.mapping_names(kind):
            yield file_of(form.PlatformForm), name.removeprefix("find_").replace("_", " ")


def file_of(kind: type) -> str:
    """Return the file of a class, as the catalogue names it."""
    return f"{kind.__module__.replace('.', '/')}.py"


def keywords(source: str) -> dict[str, Any]:
    """Return the functions that mark a string in a file, also by the names that it gives them."""
    aliases = re.findall(r"\b(\w*gettext\w*) as (\w+)", source)
    return KEYWORDS | {alias: KEYWORDS[name] for name, alias in aliases}


def collected() -> Catalog:
    """Return a catalogue of all marked strings, and of the names of tables and columns."""
    catalogue, known = Catalog(), words_of_django()
    for source, text in names():
        if text not in known:
            catalogue.add(text, None, [(source, 0)])
    for name, path in sources():
        method: Any = template_strings if path.suffix == ".html" else "python"
        with path.open("rb") as file:
            marks = keywords(path.read_text())
            for _line, message, comments, context in extract(method, file, marks, [HINT]):
                if not (name.startswith("unfold/") and key(message) in known):
                    catalogue.add(
                        message, None, [(name, 0)], auto_comments=comments, context=context
                    )
    return catalogue


def po_text(catalogue: Catalog) -> bytes:
    """Return a catalogue as a file: in the order of its sources, and without their lines."""
    file = BytesIO()
    write_po(
        file, catalogue, 100, omit_header=True, sort_by_file=True, include_lineno=False,
        ignore_obsolete=True,
    )  # fmt: skip
    fields = ["Content-Type: text/plain; charset=UTF-8"]
    if catalogue.locale:
        fields.append(f"Plural-Forms: {catalogue.plural_forms}")
    header = "".join(f'"{each}\\n"\n' for each in fields)
    return f'msgid ""\nmsgstr ""\n{header}\n'.encode() + file.getvalue()


def mo_text(catalogue: Catalog) -> bytes:
    """Return a catalogue as gettext reads it."""
    catalogue.creation_date = catalogue.revision_date = NO_DATE
    file = BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def fresh_files(new: list[str]) -> dict[Path, bytes]:
    """Return the files of locale/ as they should be."""
    strings = collected()
    files = {po_of("en"): po_text(strings)}
    present = [path.parent.parent.name for path in LOCALES.glob("*/LC_MESSAGES/django.po")]
    for language in {*present, *new} - {"en"}:
        path = po_of(language)
        catalogue = read(path, language)
        if language != "en_US":
            catalogue.update(strings)
            files[path] = po_text(catalogue)
        files[path.with_suffix(".mo")] = mo_text(catalogue)
    return files


def main(arguments: list[str]) -> str | None:
    """Write what is stale; with `--check` return which files are."""
    files = fresh_files([each for each in arguments if each != "--check"])
    stale = [path for path, text in files.items() if not path.exists() or path.read_bytes() != text]
    if stale and "--check" in arguments:
        names = ", ".join(path.relative_to(ROOT).as_posix() for path in stale)
        return f"Run `make words` and commit what it changes: {names}"
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[path])
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
