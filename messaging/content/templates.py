"""Template versions: finding, loading and activating them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now
from django.utils.translation import gettext

from messaging.content import costly_steps, rendering
from messaging.models import Partial, Template, TemplateVersion
from messaging.store import versions as store
from messaging.store.versions import TEXTS
from rme.core.cache import TtlCache
from rme.core.errors import Detail, InvalidPayload


@dataclass(frozen=True)
class ActiveTemplate:
    """The active version of a template, ready to render."""

    version_id: int
    version: int
    name: str
    language: str
    channel: str
    category: str
    variables: dict[str, Any] = field(repr=False)
    """JSON Schema of the variables that the texts need."""
    defaults: Mapping[str, Any] = field(repr=False)
    """Values from the schema for variables that a request leaves out."""
    texts: Mapping[str, Any] = field(repr=False)
    partials: Mapping[str, str] | None = field(repr=False)
    """The organization's partials, if it uses any."""

    @cached_property
    def compiled(self) -> rendering.Compiled:
        """Return its parsed texts. Raises TemplateSyntax.

        Parsing may take long: only errands parse what is not `is_parsed_quickly`.
        """
        return rendering.compile_source(self.texts, self.partials or {})

    @cached_property
    def is_parsed_quickly(self) -> bool:
        """Return whether parsing its texts takes less than 100 ms, once in each process."""
        partials = self.partials or {}
        used = rendering.used_partials(self.texts, partials) if partials else ()
        sources = [*map(str, self.texts.values()), *(partials.get(name, "") for name in used)]
        return (
            sum(map(len, sources)) <= _QUICK_LENGTH
            and sum(source.count("{") for source in sources) <= _QUICK_BRACES
        )


TemplateKey = tuple[str, str, str]
"""Name, language, channel."""
ActiveTemplates = dict[TemplateKey, ActiveTemplate]

_active: TtlCache[tuple[str, str], ActiveTemplates] = TtlCache(seconds=2)
"""Active versions by organization and template name."""
_versions: TtlCache[int, ActiveTemplate] = TtlCache(seconds=3600, size=512)
_partials: TtlCache[str, dict[str, str]] = TtlCache(seconds=2)
"""The partials of an organization, by name."""

_WRITTEN = (*TEXTS, "variables")
_QUICK_LENGTH, _QUICK_BRACES = 200_000, 2_000
"""Characters of all texts of a template, and their braces of Liquid, that are parsed quickly."""


def source_texts(version: TemplateVersion) -> dict[str, object]:
    """Return a version's texts for the renderer. MJML is replaced by the HTML compiled from it.

    Raises TemplateSyntax if a draft's MJML does not compile.
    """
    texts = {name: getattr(version, name) for name in TEXTS if name != "mjml"}
    if version.mjml:
        texts["html"] = version.compiled_html or costly_steps.compile_mjml(
            version.template.organization_id, version.mjml
        )
    return texts


def template_of(version: TemplateVersion) -> ActiveTemplate:
    """Return a version, active or not, as a template. Raises TemplateSyntax for a draft's MJML."""
    template = version.template
    texts = source_texts(version)
    return ActiveTemplate(
        version_id=version.pk,
        version=version.version,
        name=template.name,
        language=template.language,
        channel=template.channel,
        category=template.category,
        variables=version.variables,
        defaults=rendering.defaults(version.variables),
        texts=texts,
        partials=partials(template.organization_id) if rendering.used_partials(texts, {}) else None,
    )


def to_render(template: ActiveTemplate, context: Mapping[str, object]) -> rendering.VersionToRender:
    """Return what another process needs to render a template."""
    return rendering.VersionToRender(
        template.channel, template.texts, template.partials or {}, context
    )


def partials(organization_id: str) -> dict[str, str]:
    """Return the active texts of an organization's partials by name, cached for two seconds."""

    def load() -> dict[str, str]:
        rows = Partial.objects.filter(organization_id=organization_id, is_published=True)
        return dict(rows.values_list("name", "text"))

    return _partials.get(organization_id, load) or {}


def locked_partials(organization_id: str) -> dict[str, str]:
    """Return the active texts as stored now, and lock all partials until the transaction ends."""
    return _locked_partials([organization_id]).get(organization_id, {})


def _locked_partials(organization_ids: Collection[str]) -> dict[str, dict[str, str]]:
    if not organization_ids:
        return {}
    rows = Partial.objects.filter(organization_id__in=organization_ids).order_by("pk")
    texts: dict[str, dict[str, str]] = {}
    for row in rows.select_for_update():
        if row.is_published:
            texts.setdefault(row.organization_id, {})[row.name] = row.text
    return texts


def forget_partials(organization_id: str) -> None:
    """Drop the cached partials of this process; others see a change within two seconds."""
    _partials.forget(organization_id)


def find_active(organization_id: str, names: Collection[str]) -> ActiveTemplates:
    """Return the active versions of templates by name, in all languages and for all channels."""
    return find_active_of_many({organization_id: names})[organization_id]


def find_active_of_many(
    names_by_organization: Mapping[str, Collection[str]],
) -> dict[str, ActiveTemplates]:
    """Return the active versions of templates by organization, of the names of each.

    One query for the names that are not cached; the cache lasts two seconds.
    """
    owners = [(each, name) for each, names in names_by_organization.items() for name in names]
    active: dict[str, ActiveTemplates] = {each: {} for each in names_by_organization}
    for (organization_id, _), by_key in _active.get_many(owners, _read_active).items():
        active[organization_id] |= by_key
    return active


def _read_active(owners: list[tuple[str, str]]) -> dict[tuple[str, str], ActiveTemplates]:
    rows = TemplateVersion.objects.filter(
        template__organization_id__in={organization_id for organization_id, _ in owners},
        template__name__in={name for _, name in owners},
        state=TemplateVersion.State.ACTIVE,
    ).select_related("template")
    loaded: dict[tuple[str, str], ActiveTemplates] = {}
    for row in rows:
        owner = (row.template.organization_id, row.template.name)
        if owner in owners:  # several organizations may each want another name
            template = template_of(row)
            key = (template.name, template.language, template.channel)
            loaded.setdefault(owner, {})[key] = template
    return loaded


def load_versions(organization_id: str, version_ids: Collection[int]) -> dict[int, ActiveTemplate]:
    """Load versions by id in any state: what was accepted is sent with the version it had.

    One query for versions that are not cached (their texts never change), and one every two seconds
    for partials (which do).
    """

    owners = dict.fromkeys(version_ids, organization_id)
    versions = _versions.get_many(owners, partial(_read_versions, owners))
    return {key: _current(organization_id, template) for key, template in versions.items()}


def prefetch_versions(owners: Mapping[int, str]) -> None:
    """Load versions of several organizations into the cache by one query.

    `owners` maps a version's id to its organization.
    """

    _versions.get_many(owners, partial(_read_versions, owners))


def _read_versions(
    owners: Mapping[int, str], version_ids: Collection[int]
) -> dict[int, ActiveTemplate]:
    """Return versions by id, by one query; one whose organization is another is left out."""
    rows = store.read({version_id: owners[version_id] for version_id in version_ids})
    return {row.pk: template_of(row) for row in rows}


def _current(organization_id: str, template: ActiveTemplate) -> ActiveTemplate:
    if template.partials is None:
        return template
    return replace(template, partials=partials(organization_id))


def add_draft(template: Template, texts: Mapping[str, object]) -> TemplateVersion:
    """Store a draft version with the next number."""
    with transaction.atomic():
        Template.objects.select_for_update().get(pk=template.pk)
        newest = template.versions.aggregate(newest=Max("version"))["newest"] or 0
        return TemplateVersion.objects.create(template=template, version=newest + 1, **texts)


def activate(version: TemplateVersion) -> None:
    """Make a version the active one. The one before is archived and can be activated again.

    Raises InvalidPayload if a text does not parse or a partial is missing.
    """
    problems = activate_many([version]).get(version.pk)
    if problems:
        details = [Detail(p.field, p.message) for p in problems]
        raise InvalidPayload(gettext("The template does not parse."), details=details)
    version.refresh_from_db()


def activate_many(
    versions: Sequence[TemplateVersion], *, in_worker: bool = False
) -> dict[int, Sequence[rendering.TemplateProblem]]:
    """Make versions of different templates active; return what prevents it, by version.

    The number of statements does not grow with the versions, nor with the organizations. Outside a
    worker, costly checks count against the organizations' budgets. Raises RateLimited.
    """
    texts = {each.pk: {name: getattr(each, name) for name in _WRITTEN} for each in versions}
    with transaction.atomic():
        rows = Template.objects.filter(pk__in={each.template_id for each in versions})
        owners = {row.pk: row for row in rows.select_for_update().order_by("pk")}
        uses = any(rendering.used_partials(each, {}) for each in texts.values())
        partial_texts = _locked_partials(
            {row.organization_id for row in owners.values()} if uses else ()
        )
        problems: dict[int, Sequence[rendering.TemplateProblem]] = {}
        for organization_id in {row.organization_id for row in owners.values()}:
            organization_versions = [
                version
                for version in versions
                if owners[version.template_id].organization_id == organization_id
            ]
            checked = costly_steps.check_versions(
                None if in_worker else organization_id,
                [
                    (texts[each.pk], partial_texts.get(organization_id, {}))
                    for each in organization_versions
                ],
            )
            for version, result in zip(organization_versions, checked, strict=True):
                problems[version.pk], version.compiled_html = result
        _make_active([each for each in versions if not problems[each.pk]])
    for row in owners.values():
        forget(row)
    return {key: reasons for key, reasons in problems.items() if reasons}


def _make_active(versions: Sequence[TemplateVersion]) -> None:
    """Make checked versions active, with their compiled HTML, and archive the active ones."""
    owners = {version.template_id for version in versions}
    active_versions = TemplateVersion.objects.filter(
        template__in=owners, state=TemplateVersion.State.ACTIVE
    ).exclude(pk__in=[version.pk for version in versions])
    active_versions.update(state=TemplateVersion.State.ARCHIVED)
    for version in versions:
        version.state = TemplateVersion.State.ACTIVE
        version.activated_at = Now()
        version.publish_at = None
    columns = ["state", "compiled_html", "activated_at", "publish_at"]
    TemplateVersion.objects.bulk_update(versions, columns)
    Template.objects.filter(pk__in=owners, archived_at__isnull=False).update(archived_at=None)


def forget(template: Template) -> None:
    """Drop a template from the cache of this process; others see a change within two seconds."""
    _active.forget((template.organization_id, template.name))
