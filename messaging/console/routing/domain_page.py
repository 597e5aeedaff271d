"""The sender domains of an organization: the records to publish, and what DNS has of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.core.validators import RegexValidator
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.routing import lanes
from messaging.domain.channels import Channel
from messaging.models import SenderDomain
from messaging.policy import domain_checks, domain_records, organization_policy
from messaging.policy.domain_records import Record, RecordState
from rme.core import errors
from rme.core.http import checks
from rme.core.redis.host_checks import HostCheck
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

MOST = 100
"""The most domains that the page shows."""
STATES = {
    RecordState.RIGHT: ("Right", "good"),
    RecordState.WRONG: ("Wrong", "bad"),
    RecordState.MISSING: ("Missing", "bad"),
    RecordState.UNSET: ("Not known", "warn"),
    RecordState.NO_ANSWER: ("No answer", "warn"),
}
NOT_CHECKED = ("Not checked", "info")
COLUMNS = ("spf", "dkim_selector")


class RecordsForm(forms.Form):
    """What the mail provider says of a domain's records."""

    spf = forms.CharField(
        required=False,
        max_length=255,
        label="SPF mechanism",
        help_text="What your mail provider names, such as include:spf.example.com.",
        validators=[RegexValidator(r"^[!-~]+( [!-~]+)*$", "Like include:spf.example.com.")],
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    dkim_selector = forms.CharField(
        required=False,
        max_length=63,
        label="DKIM selector",
        help_text="The name before ._domainkey, as your mail provider shows it.",
        validators=[RegexValidator(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", "Like s1.")],
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, row: SenderDomain, suggested: str, data: QueryDict | None = None) -> None:
        initial = {"spf": row.spf or suggested, "dkim_selector": row.dkim_selector}
        super().__init__(data, initial=initial, label_suffix="", auto_id=f"domain_{row.pk}_%s")


@dataclass(frozen=True, slots=True)
class Line:
    """A record of a domain: what to publish, and what was found."""

    record: Record
    state: str
    colour: str
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A sender domain as the page shows it."""

    row: SenderDomain
    form: RecordsForm
    lines: Sequence[Line]
    check: HostCheck | None
    """The check that runs, or that has just ended."""


@access.page_for(Permission.SEE_SETTINGS)
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the domains; a POST stores what the provider says of one, or checks it."""
    sender_domains = SenderDomain.objects.filter(organization_id=viewer.organization_id)
    suggested = _suggested(viewer)
    filled: RecordsForm | None = None
    domain_id = 0
    if request.method == "POST":
        viewer.require(Permission.CHANGE_SETTINGS)
        typed = request.POST.get("domain", "")
        domain_id = int(typed) if typed.isdecimal() and len(typed) < 10 else 0
        row = get_object_or_404(sender_domains, pk=domain_id)
        filled = RecordsForm(row, suggested, request.POST)
        if filled.is_valid():
            _save(viewer, row, filled)
            _check(request, viewer, row)
            return HttpResponseRedirect(reverse("console:domains", args=[viewer.organization_id]))
    rows = list(sender_domains.order_by("-is_default", "domain")[:MOST])
    names = [_check_name(row) for row in rows]
    found = checks.find_each(viewer.organization_id, names)
    return access.show(
        request,
        viewer,
        "routing/domains",
        "Sender domains",
        others_page="console:domains",
        domains=[
            _shown(
                row,
                filled if filled and row.pk == domain_id else RecordsForm(row, suggested),
                found.get(_check_name(row)),
            )
            for row in rows
        ],
        is_checking=any(each.is_running for each in found.values()),
        model_url=reverse("admin:messaging_senderdomain_changelist"),
        may_change=viewer.may(Permission.CHANGE_SETTINGS),
        back=lanes.url(viewer),
    )


def _suggested(viewer: Viewer) -> str:
    """Return the mechanism of the first account for email whose provider is known to have one."""
    accounts = organization_policy.of(viewer.organization_id).accounts
    mechanisms = (
        each.provider.spf_mechanism
        for each in accounts
        if each.channel is Channel.EMAIL and each.provider
    )
    return next(filter(None, mechanisms), "")


def _save(viewer: Viewer, row: SenderDomain, form: RecordsForm) -> None:
    """Store the mechanism and the selector, with audit, if they differ."""
    values = {name: form.cleaned_data[name] for name in COLUMNS}
    changes = {
        name: [getattr(row, name), value]
        for name, value in values.items()
        if getattr(row, name) != value
    }
    if not changes:
        return
    with transaction.atomic():
        SenderDomain.objects.filter(pk=row.pk).update(**values)
        access.note(viewer, Action.CHANGED, row, changes=changes)
    row.spf, row.dkim_selector = values["spf"], values["dkim_selector"]


def _check(request: HttpRequest, viewer: Viewer, row: SenderDomain) -> None:
    """Start to look a domain's records up; the next page shows what was found."""
    work = domain_checks.check_one
    organization_id = viewer.organization_id
    try:
        checks.start(request, organization_id, _check_name(row), work, organization_id, row.pk)
    except errors.RateLimited as refusal:
        messages.warning(request, f"Saved, but not checked. {refusal.message}")


def _check_name(row: SenderDomain) -> str:
    return f"domain {row.pk}"


def _shown(row: SenderDomain, form: RecordsForm, check: HostCheck | None) -> Shown:
    findings = {each["record"]: each for each in row.findings}
    spf = row.spf or str(form.initial["spf"])
    lines = []
    for record in domain_records.to_publish(row.domain, spf, row.dkim_selector):
        finding = findings.get(record.kind)
        words, colour = (
            STATES[RecordState(finding["state"])] if finding else ("Not checked", "info")
        )
        lines.append(Line(record, words, colour, finding["text"] if finding else ""))
    return Shown(row, form, lines, check)
