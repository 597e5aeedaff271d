"""Files of templates: their paths, what they contain, and what is wrong with them.

A template in one language and for one channel is `welcome/en_US.email.liquid`; a partial is
`_partials/footer.liquid`, where no template is, since no name begins with `_`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from django.utils.translation import gettext as _

from messaging.content.templates import TemplateKey

SUFFIX = ".liquid"
PARTIALS = "_partials"
_TEMPLATE = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,199})/([a-z]{2,3}(?:_[A-Z]{2})?)\.(email|sms|push)\.liquid"
)
_PARTIAL = re.compile(r"_partials/([A-Za-z0-9][A-Za-z0-9_-]{0,63})\.liquid")
Kind = Literal["created", "changed", "unchanged"]


class SourceFile(NamedTuple):
    """A file as it was found, with its path below the folder of templates."""

    path: str
    content: bytes


class FileProblem(NamedTuple):
    """What is wrong with a file. Without a line or a field it concerns the whole."""

    path: str
    message: str
    field: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = [self.path, f"line {self.line}" if self.line else "", self.field]
        return f"{', '.join(filter(None, place))}: {self.message}"


class FilesRefused(Exception):
    """Files that are refused together, with every error."""

    def __init__(self, problems: Sequence[FileProblem]) -> None:
        self.problems = problems
        super().__init__("\n".join(map(str, problems)))


class FileChange(NamedTuple):
    """What a file changes."""

    path: str
    kind: Kind
    is_published: bool = False


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """The text of a template in one language and for one channel."""

    path: str
    key: TemplateKey
    category: str
    texts: Mapping[str, object]
    lines: Mapping[str, int]
    """The first line of each field, as the file counts them."""
    blocks: frozenset[str]
    """The fields whose lines are lines of the file."""

    def problem(self, field: str, message: str, line: int = 1) -> FileProblem:
        """Return a problem at a line of a field, with its line in the file."""
        first = self.lines.get(field) or self.lines.get(field.partition(".")[0], 1)
        return FileProblem(
            self.path, message, field, first + (line - 1 if field in self.blocks else 0)
        )


@dataclass(frozen=True, slots=True)
class PartialFile:
    """The text of a partial."""

    path: str
    name: str
    text: str


def template_path(key: TemplateKey) -> str:
    """Return the path of a template's file."""
    name, language, channel = key
    return f"{name}/{language}.{channel.lower()}{SUFFIX}"


def partial_path(name: str) -> str:
    """Return the path of a partial's file."""
    return f"{PARTIALS}/{name}{SUFFIX}"


def read_path(path: str) -> TemplateKey | str:
    """Return the key of a template, or the name of a partial. Raise FilesRefused."""
    if match := _TEMPLATE.fullmatch(path):
        return match[1], match[2], match[3].upper()
    if match := _PARTIAL.fullmatch(path):
        return match[1]
    message = _("is not a path like welcome/en_US.email.liquid or _partials/footer.liquid")
    raise FilesRefused([FileProblem(path, message)])
