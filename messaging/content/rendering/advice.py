"""What is no error and still not as its author wants it: told with a rendered text."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from messaging.content.rendering.compiled import Compiled, RenderedEmail, RenderedSms
from messaging.content.rendering.segments import foreign

SUBJECT_LENGTH = 78
"""Characters that a line should not pass (RFC 5322 §2.1.1); clients show fewer still."""
HTML_SIZE = 102_400
"""Bytes of HTML after which Gmail cuts a mail."""
_IMAGE = re.compile(r"<img\b([^<>]*)>", re.IGNORECASE)  # no `<` within, so that it stays one pass
_ALT = re.compile(r"""\salt(?=[\s=/]|\Z)""", re.IGNORECASE)
_SHOWN = 10


class Advice(NamedTuple):
    """A field of what was rendered or given, and what about it."""

    field: str
    message: str


def advise_email(email: RenderedEmail) -> list[Advice]:
    """Look at an email's subject, images and size."""
    found = []
    if not email.subject:
        found.append(Advice("subject", "is empty"))
    elif len(email.subject) > SUBJECT_LENGTH:
        said = f"has {len(email.subject)} characters; more than {SUBJECT_LENGTH} are cut off"
        found.append(Advice("subject", said))
    bare = sum(not _ALT.search(image[1]) for image in _IMAGE.finditer(email.html))
    if bare:
        found.append(Advice("html", f"{bare} image(s) without alt"))
    size = len(email.html.encode(errors="replace"))
    if size > HTML_SIZE:
        found.append(Advice("html", f"has {size} bytes; Gmail cuts it after {HTML_SIZE}"))
    return found


def advise_sms(sms: RenderedSms) -> list[Advice]:
    """Look at what an SMS costs, and why."""
    found = []
    if sms.size.segments > 1:
        found.append(Advice("text", f"takes {sms.size.segments} segments"))
    if sms.size.encoding == "UCS-2":
        strange = foreign(sms.text)
        shown = " ".join(strange[:_SHOWN]) + (" …" if len(strange) > _SHOWN else "")
        found.append(Advice("text", f"goes as UCS-2, with 70 units a segment, because of: {shown}"))
    return found


def advise_variables(
    compiled: Compiled, schema: Mapping[str, Any], given: Iterable[str]
) -> list[Advice]:
    """Name the variables that were given and that neither the texts nor the schema know."""
    properties = schema.get("properties")
    known = compiled.names | set(properties if isinstance(properties, dict) else ())
    return [
        Advice(f"variables.{name}", "is not used by the template")
        for name in sorted(given)
        if name not in known and None not in known
    ]
