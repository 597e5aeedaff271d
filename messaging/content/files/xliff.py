"""Texts of a template for translators, as XLIFF 1.2 (OASIS, 1 February 2008), and back.

A unit is a text of a version, by its name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from django.utils.translation import gettext as _

from rme.core import errors

NAMESPACE = "urn:oasis:names:tc:xliff:document:1.2"
TEXTS = ("subject", "html", "mjml", "text", "title", "body")
"""The fields that are translated: the others are addresses, numbers and data."""
BYTES_LIMIT = 2_000_000
_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML document may have (XML 1.0 §2.2)."""
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclass(frozen=True, slots=True)
class Translation:
    """The texts of one template, language and channel, as a translator sends them back."""

    original: str
    """The template's name and channel, such as `welcome.EMAIL`."""
    language: str
    texts: Mapping[str, str]


def changed(now: Mapping[str, object], before: Mapping[str, object]) -> dict[str, str]:
    """Return the texts to translate: those that are there and differ from those of before."""
    return {
        name: str(now[name]) for name in TEXTS if now.get(name) and now[name] != before.get(name)
    }


def write(
    original: str,
    languages: tuple[str, str],
    source: Mapping[str, str],
    target: Mapping[str, object],
) -> bytes:
    """Return a document with the texts of the source, each with the target's text of now.

    `languages` are those of the source and of the target, as rme writes them (`en_GB`).
    """
    ElementTree.register_namespace("", NAMESPACE)
    root = ElementTree.Element(_name("xliff"), version="1.2")
    source_language, target_language = (each.replace("_", "-") for each in languages)
    file = ElementTree.SubElement(
        root,
        _name("file"),
        {
            "original": original,
            "datatype": "html",
            "source-language": source_language,
            "target-language": target_language,
        },
    )
    body = ElementTree.SubElement(file, _name("body"))
    for name, text in source.items():
        unit = ElementTree.SubElement(body, _name("trans-unit"), {"id": name, _SPACE: "preserve"})
        ElementTree.SubElement(unit, _name("source")).text = _ILLEGAL.sub("", text)
        state = {"state": "needs-translation"}
        before = ElementTree.SubElement(unit, _name("target"), state)
        before.text = _ILLEGAL.sub("", str(target.get(name) or ""))
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def read(content: bytes) -> Translation:
    """Return the texts of a document. Raise InvalidPayload that says what is wrong with it.

    A document type is refused: its entities could grow without limit.
    """
    try:
        text = content.decode("utf-8-sig")
        if "<!DOCTYPE" in text.upper():
            raise _refusal(_("The file has a document type. Export it without one."))
        root = ElementTree.fromstring(text)  # noqa: S314  # no document type, so no entities
        file = root.find(_name("file"))
    except (UnicodeDecodeError, ElementTree.ParseError) as error:
        message = _("This isn't an XLIFF file in UTF-8. Export it as XLIFF 1.2.")
        raise _refusal(message) from error
    if file is None:
        raise _refusal(_("The file has no XLIFF 1.2 content. Export it as XLIFF 1.2."))
    texts: dict[str, str] = {}
    for unit in file.iter(_name("trans-unit")):
        name, target = unit.get("id", ""), unit.find(_name("target"))
        if name not in TEXTS:
            message = _("The file has a text {name}, which templates don't have.")
            raise _refusal(message.format(name=name[:40]))
        words = "".join(target.itertext()) if target is not None else ""
        if words.strip():
            texts[name] = words
    language = file.get("target-language", "").replace("-", "_")
    return Translation(file.get("original", ""), language, texts)


def _name(tag: str) -> str:
    return f"{{{NAMESPACE}}}{tag}"


def _refusal(message: str) -> errors.InvalidPayload:
    return errors.InvalidPayload.at("file", message)
