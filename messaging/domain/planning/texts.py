"""The texts that a recipient may get: literal content, or a template's versions in its language."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from messaging.domain.channels import Channel
from messaging.domain.planning.outlines import Outline, RequestedTemplate
from messaging.domain.planning.refusals import RefusalCode, SendRefusal, invalid
from messaging.domain.sentences import sentence


class ActiveVersion(Protocol):
    """An active version of a template, as far as plans depend on it."""

    @property
    def version_id(self) -> int: ...
    @property
    def category(self) -> str: ...
    @property
    def variables(self) -> Mapping[str, Any]:
        """Return the JSON Schema of the variables that the texts need."""
        ...


T = TypeVar("T")
TemplateKey = tuple[str, str, str]
"""Name, language, channel."""
Versions = Mapping[TemplateKey, ActiveVersion]


def languages(preferred: str, organization_language: str, *, chain: bool) -> list[str]:
    """Return the languages to try: the exact one, or with `chain` `en_GB`, `en`, the default."""
    if not chain:
        return [preferred]
    return list(dict.fromkeys([preferred, preferred.partition("_")[0], organization_language]))


def pick(
    versions: Mapping[TemplateKey, T], name: str, channel: str, languages: Sequence[str]
) -> T | None:
    """Return the version of the first language that has an active one for the channel."""
    for language in languages:
        if version := versions.get((name, language, channel)):
            return version
    return None


class Texts(NamedTuple):
    """The texts that a recipient may get, in the order of its request's channels."""

    usable: Sequence[bool]
    """Whether there is a text for the channel."""
    versions: Sequence[ActiveVersion | None]
    """Those of a template; literal content has none."""
    templates: tuple[ActiveVersion, ...] = ()
    """The versions that exist."""
    missing_code: RefusalCode = RefusalCode.INVALID_PAYLOAD
    """Why a channel without a text is left out."""
    refusal: SendRefusal | None = None
    """Why the request is refused as a whole."""


NO_TEXTS = Texts((), ())
_LITERAL_FIELDS = {Channel.EMAIL: "subject", Channel.SMS: "text", Channel.PUSH: "title"}


def literal_texts(outline: Outline) -> Texts:
    """Return the texts that stand in the request itself."""
    suited, channels = outline.request.literal_channels, outline.channels
    usable = [channel in suited for channel in channels]
    refusal = None
    if not any(usable):
        field = _LITERAL_FIELDS[channels[0]]
        refusal = invalid(
            f"content.{field}", sentence("is required for %(channels)s", channels=channels[0].noun)
        )
    return Texts(usable, [None] * len(channels), refusal=refusal)


def template_texts(
    outline: Outline, template: RequestedTemplate, versions: Versions, contact_language: str
) -> Texts:
    """Return a template's versions for a recipient of this language."""
    organization = outline.request.organization
    tried = languages(
        template.language or contact_language or organization.language,
        organization.language,
        chain=organization.locale_fallback,
    )
    picked = [pick(versions, template.name, channel, tried) for channel in outline.channels]
    active = tuple(version for version in picked if version)
    refusal = None
    if not active:
        refusal = SendRefusal(
            RefusalCode.TEMPLATE_NOT_FOUND,
            sentence(
                "There is no active template %(name)s in %(tried)s for %(channels)s.",
                name=template.name,
                tried=tried[0],
                channels=", ".join(each.noun for each in outline.channels),
            ),
        )
    elif any(version.category != outline.request.category for version in active):
        refusal = invalid(
            "category",
            sentence("the template's category is %(category)s", category=active[0].category),
        )
    return Texts(  # the refusal says it: no channel is left out for itself
        [version is not None or refusal is not None for version in picked],
        picked,
        active,
        RefusalCode.TEMPLATE_NOT_FOUND,
        refusal,
    )
