"""Templates of an organization: finding the active version, and making one active."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from messaging import rendering
from messaging.models import Template, TemplateVersion
from rme.core.cache import TtlCache
from rme.core.errors import Detail, InvalidPayload


@dataclass(frozen=True, slots=True)
class ActiveTemplate:
    """The active version of a template, ready to render."""

    version_id: int
    version: int
    name: str
    language: str
    channel: str
    category: str
    variables: dict[str, Any] = field(repr=False)
    compiled: Any = field(repr=False)


Key = tuple[str, str, str]
"""Name, language, channel."""

_active: TtlCache[tuple[str, str], dict[Key, ActiveTemplate]] = TtlCache(seconds=2)
"""Active versions by organization and template name."""
_versions: TtlCache[int, ActiveTemplate] = TtlCache(seconds=3600, size=512)

TEXTS = ("subject", "text", "html", "mjml", "title", "body", "data", "badge", "image", "link")


def sources(version: TemplateVersion) -> dict[str, Any]:
    """Give a version's texts for the renderer; compiled MJML stands in for HTML."""
    texts = {name: getattr(version, name) for name in TEXTS if name != "mjml"}
    texts["html"] = version.compiled_html or version.html
    return texts


def _ready(version: TemplateVersion) -> ActiveTemplate:
    template = version.template
    return ActiveTemplate(
        version_id=version.pk,
        version=version.version,
        name=template.name,
        language=template.language,
        channel=template.channel,
        category=template.category,
        variables=version.variables,
        compiled=rendering.compile_source(sources(version)),
    )


def active(organization_id: str, names: Collection[str]) -> dict[Key, ActiveTemplate]:
    """Find the active versions of names, in all languages and for all channels.

    One query for those that were not asked for in the last two seconds.
    """

    def load(missing: list[tuple[str, str]]) -> dict[tuple[str, str], dict[Key, ActiveTemplate]]:
        rows = TemplateVersion.objects.filter(
            template__organization_id=organization_id,
            template__name__in=[name for _, name in missing],
            state=TemplateVersion.State.ACTIVE,
        ).select_related("template")
        loaded: dict[tuple[str, str], dict[Key, ActiveTemplate]] = {}
        for row in rows:
            ready = _ready(row)
            key = (ready.name, ready.language, ready.channel)
            loaded.setdefault((organization_id, ready.name), {})[key] = ready
        return loaded

    found = _active.get_many([(organization_id, name) for name in names], load)
    return {key: template for by_key in found.values() for key, template in by_key.items()}


def languages(wanted: str, organization_language: str, *, chain: bool) -> list[str]:
    """Give the languages to look for: the exact one, or `en_GB`, `en`, the organization's."""
    if not chain:
        return [wanted]
    return list(dict.fromkeys([wanted, wanted.partition("_")[0], organization_language]))


def pick(
    found: dict[Key, ActiveTemplate], name: str, channel: str, wanted: Sequence[str]
) -> ActiveTemplate | None:
    """Pick the first language that has an active version for the channel."""
    return next((found[key] for lang in wanted if (key := (name, lang, channel)) in found), None)


def by_versions(organization_id: str, version_ids: Collection[int]) -> dict[int, ActiveTemplate]:
    """Load versions by id, whatever their state: what was accepted is sent as it was.

    One query for those that this process has not seen; texts of a version never change.
    """

    def load(missing: list[int]) -> dict[int, ActiveTemplate]:
        rows = TemplateVersion.objects.filter(
            template__organization_id=organization_id, pk__in=missing
        ).select_related("template")
        return {row.pk: _ready(row) for row in rows}

    return _versions.get_many(set(version_ids), load)


def save_version(template: Template, texts: dict[str, Any]) -> TemplateVersion:
    """Add a draft version with the next number."""
    with transaction.atomic():
        Template.objects.select_for_update().get(pk=template.pk)
        newest = template.versions.aggregate(newest=Max("version"))["newest"] or 0
        return TemplateVersion.objects.create(template=template, version=newest + 1, **texts)


def activate(version: TemplateVersion) -> None:
    """Make a version the active one; the one before it is archived and can be made active again.

    Raises InvalidPayload if a text does not parse: such a version cannot become active.
    """
    problems = rendering.check({name: getattr(version, name) for name in (*TEXTS, "variables")})
    if problems:
        details = [Detail(p.field, p.message) for p in problems]
        raise InvalidPayload("The template does not parse.", details=details)
    with transaction.atomic():
        template = Template.objects.select_for_update().get(pk=version.template_id)
        template.versions.filter(state=TemplateVersion.State.ACTIVE).exclude(pk=version.pk).update(
            state=TemplateVersion.State.ARCHIVED
        )
        compiled = rendering.compile_mjml(version.mjml) if version.mjml else ""
        TemplateVersion.objects.filter(pk=version.pk).update(
            state=TemplateVersion.State.ACTIVE, activated_at=Now(), compiled_html=compiled
        )
    version.refresh_from_db()
    _active.forget((template.organization_id, template.name))
