"""What needs attention: the findings of health as sentences, each with the page that mends it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from messaging.console import wording
from messaging.console.filters.message_filter import HELD
from messaging.domain.attention import Finding, Severity
from messaging.domain.statuses import Status
from messaging.reports import checks, configuration
from rme.tenants.access.roles import Permission as P


@dataclass(frozen=True, slots=True)
class Need:
    """A problem, and the button that leads to the page where it is mended; empty without such a
    page, and for a person to whom it is closed.
    """

    text: str
    url: str
    button: str
    severe: bool = False
    """Sends fail or wait because of it."""
    is_note: bool = False
    """Nothing is wrong any more; it explains what happened."""


@dataclass(frozen=True, slots=True)
class RepairPage:
    """A page that mends something, the button that leads there, and what opening it requires."""

    name: str
    """Of the console, or with `admin:` of the model admin."""
    button: Promise
    permission: P = P.SEE_SETTINGS
    query: str = ""
    has_row: bool = False
    change: P | None = None
    """What doing as the button says requires besides; others get the button `look`."""
    look: Promise | str = ""


_PAGES = {
    "NO_SENDER_DOMAIN": RepairPage(
        "domains", lazy("Add a domain"), change=P.CHANGE_SETTINGS, look=lazy("See domains")
    ),
    "SENDER_DOMAIN_UNVERIFIED": RepairPage(
        "domain",
        lazy("Verify domain"),
        has_row=True,
        change=P.CHANGE_SETTINGS,
        look=lazy("See domain"),
    ),
    "TEMPLATE_WITHOUT_LANGUAGE": RepairPage("templates", lazy("See templates"), P.SEE_TEMPLATES),
    "WEBHOOK_DISABLED": RepairPage("webhook_deliveries", lazy("See webhook"), has_row=True),
    "WEBHOOK_FAILING": RepairPage("webhook_deliveries", lazy("See webhook"), has_row=True),
    "PROGRAM_UNCONFIRMED": RepairPage("programs", lazy("Confirm"), P.CHANGE_KEYS),
    "HELD_UNKNOWN": RepairPage(
        "messages",
        lazy("Review messages"),
        P.SEE_MESSAGES,
        f"?status={HELD}",
        change=P.OPERATE,
        look=lazy("See messages"),
    ),
    "BACKLOG_LATE": RepairPage(
        "messages", lazy("See messages"), P.SEE_MESSAGES, f"?status={Status.ACCEPTED}"
    ),
    "PRIVACY_REQUEST_OVERDUE": RepairPage(
        "privacy", lazy("See requests"), P.SEE_PEOPLE, "?state=OVERDUE"
    ),
    "REVIEW_WAITING": RepairPage("templates", lazy("Review"), P.SEE_TEMPLATES, "?state=review"),
    "PAUSED": RepairPage(
        "admin:messaging_pause_change",
        lazy("End pause"),
        has_row=True,
        change=P.OPERATE,
        look=lazy("See pause"),
    ),
    "IMPORT_REJECTED": RepairPage(
        "admin:{kind}_import", lazy("See import"), P.SEE_PEOPLE, has_row=True
    ),
}
_TEMPLATE = RepairPage("template", lazy("Review"), P.SEE_TEMPLATES, has_row=True)
"""Of the only template that waits for a review."""
_ACCOUNT = RepairPage("provider", lazy("See account"), has_row=True)
_ACCOUNTS = RepairPage(
    "providers", lazy("Add a provider"), change=P.CHANGE_SETTINGS, look=lazy("See providers")
)
"""Of findings without a row: a channel has no account that sends."""
_PARTS = {
    "database": lazy("Database"),
    "redis": "Redis",
    "broker": lazy("Broker"),
    "archive": lazy("Archive"),
}
"""The parts of the deployment whose checks say what is wrong without naming them."""
_NAMING_FILES = {"IMPORT_REJECTED"}
"""Findings that name a file of people: only who may see people sees them."""


def of_organization(findings: Iterable[Finding], permissions: frozenset[P]) -> list[Need]:
    """Return the needs of an organization for somebody with these permissions there, the most
    harmful first.
    """
    needs = [
        Need(
            wording.said(each.message),
            *_button(each, permissions),
            severe=each.severity == Severity.ERROR,
        )
        for each in findings
        if P.SEE_PEOPLE in permissions or each.code not in _NAMING_FILES
    ]
    return sorted(needs, key=attrgetter("severe"), reverse=True)


def _button(finding: Finding, permissions: frozenset[P]) -> tuple[str, str]:
    """Return the address and the button of the page where a finding is mended; empty if the page
    is closed to somebody with these permissions.
    """
    page = _PAGES.get(finding.code) or (_ACCOUNT if finding.row_id else _ACCOUNTS)
    if finding.code == "REVIEW_WAITING" and finding.row_id:
        page = _TEMPLATE
    if page.permission not in permissions:
        return "", ""
    row_id = [finding.row_id] if page.has_row else []
    if page.name.startswith("admin:"):
        app = "messaging" if finding.kind == "Suppression" else "crm"
        url = reverse(page.name.format(kind=f"{app}_{finding.kind.lower()}"), args=row_id)
    else:
        url = reverse(f"console:{page.name}", args=[finding.organization_id, *row_id])
    may_change = page.change is None or page.change in permissions
    return f"{url}{page.query}", str(page.button if may_change else page.look)


def of_deployment(results: Mapping[str, checks.Check], organization_id: str) -> list[Need]:
    """Return what the checks of the deployment have found; a check that is ok may have a detail.

    Only who operates the deployment can mend it, so a button leads at most to the effects.
    """
    shown = {name: check for name, check in results.items() if check.detail}
    if "workers" in shown and shown["workers"].status != checks.OK:
        shown.pop("scheduler", None)  # it follows from the workers
    messages = reverse("console:messages", args=[organization_id])
    effects = (f"{messages}?status={Status.ACCEPTED}", _("See waiting messages"))
    return [
        Need(
            _sentence(name, wording.said(check.detail or "")),
            *(effects if name in ("workers", "scheduler") else ("", "")),
            severe=check.status == checks.DOWN,
            is_note=check.status == checks.OK,
        )
        for name, check in shown.items()
    ]


def _sentence(name: str, detail: str) -> str:
    """Return a check's detail as a sentence; some are one already. A time in UTC is left out: the
    page's times are in the organization's zone.
    """
    text = re.sub(r" \([^()]* UTC\)", "", detail)
    if text.endswith("."):
        return text
    return _("%(part)s: %(problem)s.") % {"part": _PARTS.get(name, name), "problem": text}


def elsewhere(organizations: Mapping[str, str], organization_id: str) -> Sequence[Need]:
    """Return how many problems the other organizations (names by id) have: a line for each."""
    others = [each for each in organizations if each != organization_id]
    if not others:
        return []
    findings = configuration.findings(others)
    problems = Counter(f.organization_id for f in findings if f.severity == Severity.ERROR)
    return [
        Need(
            _problems(organizations[each], problems[each]),
            f"{reverse('admin:index')}?organization={each}",
            _("Open %(organization)s") % {"organization": organizations[each]},
            severe=True,
        )
        for each in others
        if problems[each]
    ]


def _problems(organization: str, count: int) -> str:
    text = ngettext(
        "%(organization)s: %(count)s problem stops sending.",
        "%(organization)s: %(count)s problems stop sending.",
        count,
    )
    return text % {"organization": organization, "count": count}
