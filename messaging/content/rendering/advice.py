"""Warnings about a rendered text: no errors, but probably not what its author wants."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from messaging.content.rendering.rendered import RenderedEmail, RenderedSms
from messaging.content.rendering.segments import non_gsm_characters
from messaging.domain.sentences import sentence

SUBJECT_LENGTH = 78
"""Characters that a line should not exceed (RFC 5322 §2.1.1); clients show even fewer."""
HTML_SIZE = 102_400
"""Bytes of HTML after which Gmail clips an email."""
_IMAGE = re.compile(r"<img\b([^<>]*)>", re.IGNORECASE)  # no `<` within, so that it stays one pass
_ALT = re.compile(r"""\salt(?=[\s=/]|\Z)""", re.IGNORECASE)
_SHOWN = 10


class Advice(NamedTuple):
    """A warning about a field of the rendered text or of the input."""

    field: str
    message: str


def advise_email(email: RenderedEmail) -> list[Advice]:
    """Return warnings about an email's subject, images and size."""
    advice = []
    if not email.subject:
        advice.append(Advice("subject", sentence("is empty")))
    elif len(email.subject) > SUBJECT_LENGTH:
        message = sentence(
            "has %(count)s characters; more than %(subject_length)s are cut off",
            count=len(email.subject),
            subject_length=SUBJECT_LENGTH,
        )
        advice.append(Advice("subject", message))
    bare = sum(not _ALT.search(image[1]) for image in _IMAGE.finditer(email.html))
    if bare:
        advice.append(Advice("html", sentence("%(bare)s image(s) without alt", bare=bare)))
    size = len(email.html.encode(errors="replace"))
    if size > HTML_SIZE:
        advice.append(
            Advice(
                "html",
                sentence(
                    "has %(size)s bytes; Gmail cuts it after %(html_size)s",
                    size=size,
                    html_size=HTML_SIZE,
                ),
            )
        )
    return advice


def advise_sms(sms: RenderedSms) -> list[Advice]:
    """Return warnings about the number of an SMS's segments and its encoding."""
    advice = []
    if sms.size.segments > 1:
        advice.append(
            Advice("text", sentence("takes %(segments)s segments", segments=sms.size.segments))
        )
    if sms.size.encoding == "UCS-2":
        characters = non_gsm_characters(sms.text)
        sample = " ".join(characters[:_SHOWN]) + (" …" if len(characters) > _SHOWN else "")
        advice.append(
            Advice(
                "text",
                sentence(
                    "goes as UCS-2, with 70 units a segment, because of: %(sample)s", sample=sample
                ),
            )
        )
    return advice


def advise_variables(
    names: Collection[str | None], schema: Mapping[str, object], variable_names: Iterable[str]
) -> list[Advice]:
    """Return a warning for each variable that neither the texts nor the schema use."""
    properties = schema.get("properties")
    used_names = {*names, *(properties if isinstance(properties, dict) else ())}
    return [
        Advice(f"variables.{name}", sentence("is not used by the template"))
        for name in sorted(variable_names)
        if name not in used_names and None not in used_names
    ]
