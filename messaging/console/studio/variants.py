"""The variants of a template: one for each language and channel, with their state."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.db.models import OuterRef, Q, Subquery
from django.urls import reverse
from django.utils.translation import gettext as _

from messaging.console import wording
from messaging.console.access import Viewer
from messaging.domain.channels import Channel
from messaging.models import Template, TemplateVersion
from rme.tenants.organizations import languages

_ORDER = {each.value: place for place, each in enumerate(Channel)}
_DRAFT = (
    *("version", "revision", "review_by", "approved_by", "publish_at", "publish_problem"),
    "edited_by",
)


@dataclass(frozen=True, slots=True)
class Variant:
    """A template in one language and for one channel."""

    id: int
    name: str
    language: str
    channel: str
    category: str
    active: int | None
    """The number of the active version."""
    activated_at: datetime | None
    draft: int | None
    """The number of the newest version, if that is a draft."""
    revision: int | None
    """The draft's."""
    review_by: str
    approved_by: str
    publish_at: datetime | None
    problem: str
    edited_by: str
    is_archived: bool
    lags: bool
    """Whether the default language has had a newer active version since."""
    url: str

    @property
    def seen(self) -> str:
        """Return the text by which a form says which draft a person has seen."""
        return f"{self.id}.{self.draft}.{self.revision}"

    @property
    def title(self) -> str:
        return f"{languages.name(self.language)}, {wording.channel(self.channel)}"

    @property
    def states(self) -> list[tuple[str, str]]:
        """Return its state in words, each with the name of a colour."""
        states = []
        if self.is_archived:
            states.append((_("Archived"), "muted"))
        elif self.active:
            states.append((_("Version {number} is active").format(number=self.active), "good"))
        elif not self.draft:
            states.append((_("Nothing is active"), "warn"))
        if self.draft:
            states.append((_("Draft {number}").format(number=self.draft), "info"))
        if self.problem:
            states.append((_("Could not be published"), "bad"))
        elif self.publish_at:
            states.append((_("Will be published"), "info"))
        elif self.approved_by:
            states.append((_("Approved"), "good"))
        elif self.review_by:
            states.append((_("Waiting for review"), "warn"))
        if self.lags:
            states.append((_("Translation outdated"), "warn"))
        return states


def find(viewer: Viewer, names: Collection[str]) -> dict[str, list[Variant]]:
    """Return the variants of templates by name, those of the default language first; one query."""
    rows_by_name: dict[str, list[Mapping[str, object]]] = {}
    for row in _rows(viewer.organization_id, names):
        rows_by_name.setdefault(str(row["name"]), []).append(row)
    return {name: _variants(viewer, rows_by_name[name]) for name in names if name in rows_by_name}


def _rows(organization_id: str, names: Collection[str]) -> Iterable[Mapping[str, object]]:
    versions = TemplateVersion.objects.filter(template=OuterRef("pk"))
    active = versions.filter(state=TemplateVersion.State.ACTIVE)
    newest = versions.order_by("-version")
    rows: Iterable[Mapping[str, object]] = (
        Template.objects.filter(organization_id=organization_id, name__in=names)
        .annotate(
            active=Subquery(active.values("version")),
            activated_at=Subquery(active.values("activated_at")),
            state=Subquery(newest.values("state")[:1]),
            **{f"draft_{name}": Subquery(newest.values(name)[:1]) for name in _DRAFT},
        )
        .values(
            *("id", "name", "language", "channel", "category", "archived_at"),
            *("active", "activated_at", "state"),
            *(f"draft_{name}" for name in _DRAFT),
        )
        .order_by("name", "language")
    )
    return rows


def _variants(viewer: Viewer, rows: Sequence[Mapping[str, object]]) -> list[Variant]:
    default = viewer.organization.language
    newest = {
        row["channel"]: row["activated_at"]
        for row in rows
        if row["language"] == default and row["activated_at"]
    }
    variants = [_variant(viewer, row, newest.get(row["channel"])) for row in rows]
    return sorted(variants, key=lambda p: (p.language != default, p.language, _ORDER[p.channel]))


def _variant(viewer: Viewer, row: Mapping[str, object], default_at: object) -> Variant:
    is_draft = row["state"] == TemplateVersion.State.DRAFT
    draft = {name: row[f"draft_{name}"] if is_draft else None for name in _DRAFT}
    at = row["activated_at"]
    lags = isinstance(at, datetime) and isinstance(default_at, datetime) and at < default_at
    name, language, channel = str(row["name"]), str(row["language"]), str(row["channel"])
    publish_at = draft["publish_at"]
    return Variant(
        id=_number(row["id"]) or 0,
        name=name,
        language=language,
        channel=channel,
        category=str(row["category"]),
        active=_number(row["active"]),
        activated_at=at if isinstance(at, datetime) else None,
        draft=_number(draft["version"]),
        revision=_number(draft["revision"]),
        review_by=str(draft["review_by"] or ""),
        approved_by=str(draft["approved_by"] or ""),
        publish_at=publish_at if isinstance(publish_at, datetime) else None,
        problem=str(draft["publish_problem"] or ""),
        edited_by=str(draft["edited_by"] or ""),
        is_archived=row["archived_at"] is not None,
        lags=lags,
        url=url(viewer.organization_id, name, language, channel),
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def url(organization_id: str, name: str, language: str, channel: str, **parameters: object) -> str:
    """Return the address of a variant's page."""
    query = urlencode({"language": language, "channel": channel, **parameters})
    return f"{reverse('console:template', args=[organization_id, name])}?{query}"


def url_of(template: Template, **parameters: object) -> str:
    """Return the address of a template's page."""
    owner, name = template.organization_id, template.name
    return url(owner, name, template.language, template.channel, **parameters)


def name_of(template: Template) -> str:
    """Return a variant's name in a sentence, such as `order in German for email`."""
    return _("{name} in {language} for {channel}").format(
        name=template.name,
        language=languages.name(template.language),
        channel=wording.channel_noun(template.channel),
    )


def choose(variants: Iterable[Variant], language: str, channel: str) -> Variant | None:
    """Return the variant with a language and channel, or the first that has one of them."""
    candidates = list(variants)
    for preference in ((language, channel), (language, ""), ("", channel), ("", "")):
        for variant in candidates:
            if preference[0] in ("", variant.language) and preference[1] in ("", variant.channel):
                return variant
    return None


def waiting() -> Q:
    """Return the condition for templates that wait for a review."""
    return Q(versions__state=TemplateVersion.State.DRAFT) & ~Q(versions__review_by="")
