"""A version as the text of a file, and back.

The body below the front matter is the field that `format` names for an email (html, mjml or text),
the text of an SMS, and the body of a push. All other fields that are not empty stand in the front
matter, with the category.
"""

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _

from messaging.content import drafts
from messaging.content.files import front_matter
from messaging.content.files.file_types import (
    FileProblem,
    FilesRefused,
    PartialFile,
    SourceFile,
    TemplateFile,
    partial_path,
    read_path,
    template_path,
)
from messaging.content.files.front_matter import Document, FrontMatterError
from messaging.content.inputs import DRAFT
from messaging.content.templates import TemplateKey
from messaging.models import TemplateVersion
from rme.core import errors
from rme.core.http.parsing import parse, refuse_nul

FORMATS = ("html", "mjml", "text")
"""What the body of an email may be; html if the file does not say it."""
_BODY = {"SMS": "text", "PUSH": "body"}


def normal(text: object) -> object:
    """Return a text with the line breaks that files have; anything else as it is."""
    return text.replace("\r\n", "\n") if isinstance(text, str) else text


def texts_of(version: TemplateVersion) -> dict[str, object]:
    """Return the texts that a file has of a version."""
    names = (*drafts.BY_CHANNEL[version.template.channel], "variables")
    texts = drafts.texts_of(version)
    fields = {name: normal(texts[name]) for name in names}
    if isinstance(data := fields.get("data"), dict):
        fields["data"] = {name: normal(text) for name, text in data.items()}
    return fields


def write(version: TemplateVersion) -> SourceFile:
    """Return a version as a file. Raise FilesRefused for a name that is no path."""
    template = version.template
    texts = texts_of(version)
    body = _BODY.get(template.channel) or next((n for n in ("mjml", "html") if texts[n]), "text")
    values: dict[str, object] = {"category": template.category}
    if template.channel == "EMAIL" and body != "html":
        values["format"] = body
    values |= {n: text for n, text in texts.items() if n != body and text not in ("", None, {})}
    path = template_path((template.name, template.language, template.channel))
    read_path(path)
    return SourceFile(path, front_matter.write(values, str(texts[body])).encode())


def write_partial(name: str, text: str) -> SourceFile:
    """Return a partial as a file: its text, and a line break. Raise FilesRefused."""
    path = partial_path(name)
    read_path(path)
    return SourceFile(path, f"{normal(text)}\n".encode())


def read(file: SourceFile) -> TemplateFile | PartialFile:
    """Return what a file contains. Raise FilesRefused with its problems."""
    key = read_path(file.path)
    try:
        text = file.content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise FilesRefused([FileProblem(file.path, _("is not text in UTF-8"))]) from error
    if "\0" in text:
        raise FilesRefused([FileProblem(file.path, _("contains a NUL character"))])
    if isinstance(key, str):
        return PartialFile(file.path, key, text.removesuffix("\n"))
    try:
        return _template(file.path, key, front_matter.parse(text))
    except FrontMatterError as error:
        problem = FileProblem(file.path, error.message, error.name, error.line)
        raise FilesRefused([problem]) from error


def _template(path: str, key: TemplateKey, document: Document) -> TemplateFile:
    channel = key[2]
    values = dict(document.values)
    category = values.pop("category", "")
    body = _BODY.get(channel) or values.pop("format", "html")
    channel_fields = drafts.BY_CHANNEL[channel]
    file = TemplateFile(
        path,
        key,
        str(category),
        {},
        {**document.lines, str(body): document.body_line},
        frozenset({*document.blocks, str(body)}),
    )
    problems = []
    if not isinstance(category, str) or not category:
        problems.append(file.problem("category", _("is missing: the category of the template")))
    if body not in (*FORMATS, *_BODY.values()):
        problems.append(file.problem("format", _("is not html, mjml or text")))
    for name in values:
        if name not in (*channel_fields, "variables"):
            problems.append(
                file.problem(name, _("%(channel)s has no such field") % {"channel": channel})
            )
        elif name == body:
            problems.append(file.problem(name, _("also appears below the front matter")))
    if problems:
        raise FilesRefused(problems)
    empty = drafts.texts_of(None)
    fields = {name: empty[name] for name in (*channel_fields, "variables")} | values
    fields[str(body)] = document.body
    return _with_texts(file, fields)


def _with_texts(file: TemplateFile, fields: Mapping[str, object]) -> TemplateFile:
    """Return the file with its texts, by the rules of drafts. Raise FilesRefused."""
    try:
        refuse_nul(fields)
        parsed = parse(DRAFT, dict(fields)).model_dump()
    except errors.InvalidPayload as error:
        raise FilesRefused(
            [file.problem(each.field, each.message) for each in error.details]
        ) from error
    texts = {name: parsed[name] for name in fields}
    return TemplateFile(file.path, file.key, file.category, texts, file.lines, file.blocks)


def read_all(files: Sequence[SourceFile]) -> tuple[list[TemplateFile], list[PartialFile]]:
    """Return what the files contain. Raise FilesRefused with the problems of all of them."""
    templates: list[TemplateFile] = []
    partials: list[PartialFile] = []
    problems: list[FileProblem] = []
    for file in files:
        try:
            content = read(file)
        except FilesRefused as error:
            problems += error.problems
            continue
        if isinstance(content, PartialFile):
            partials.append(content)
        else:
            templates.append(content)
    if problems:
        raise FilesRefused(problems)
    return templates, partials
