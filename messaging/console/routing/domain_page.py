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
from messaging.models import SenderDomain
from messaging.policy import domain_checks, domain_records, organization_policy
from messaging.policy.domain_records import Record, RecordState
from rme.core.channels import Channel
from rme.tenants.audit import Action
from rme.tenants.roles import Permission

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


@access.page_for(Permission.SEE_SETTINGS)
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the domains; a POST stores what the provider says of one, or checks it."""
    own = SenderDomain.objects.filter(organization_id=viewer.organization_id)
    suggested = _suggested(viewer)
    filled: RecordsForm | None = None
    chosen = 0
    if request.method == "POST":
        viewer.require(Permission.CHANGE_SETTINGS)
        typed = request.POST.get("domain", "")
        chosen = int(typed) if typed.isdecimal() and len(typed) < 10 else 0
        row = get_object_or_404(own, pk=chosen)
        filled = RecordsForm(row, suggested, request.POST)
        if filled.is_valid():
            _save(viewer, row, filled)
            _check(request, row)
            return HttpResponseRedirect(reverse("console:domains", args=[viewer.organization_id]))
    rows = own.order_by("-is_default", "domain")[:MOST]
    return access.show(
        request,
        viewer,
        "routing/domains",
        "Sender domains",
        others_page="console:domains",
        domains=[
            _shown(row, filled if filled and row.pk == chosen else RecordsForm(row, suggested))
            for row in rows
        ],
        model_url=reverse("admin:messaging_senderdomain_changelist"),
        may_change=viewer.may(Permission.CHANGE_SETTINGS),
        back=lanes.url(viewer),
    )


def _suggested(viewer: Viewer) -> str:
    """Return the mechanism of the first account for email whose provider is known to have one."""
    accounts = organization_policy.of(viewer.organization_id).accounts
    found = (
        each.provider.spf_mechanism
        for each in accounts
        if each.channel is Channel.EMAIL and each.provider
    )
    return next(filter(None, found), "")


def _save(viewer: Viewer, row: SenderDomain, form: RecordsForm) -> None:
    """Store the mechanism and the selector, with audit, if they differ."""
    given = {name: form.cleaned_data[name] for name in COLUMNS}
    changes = {
        name: [getattr(row, name), value]
        for name, value in given.items()
        if getattr(row, name) != value
    }
    if not changes:
        return
    with transaction.atomic():
        SenderDomain.objects.filter(pk=row.pk).update(**given)
        access.note(viewer, Action.CHANGED, row, changes=changes)
    row.spf, row.dkim_selector = given["spf"], given["dkim_selector"]


def _check(request: HttpRequest, row: SenderDomain) -> None:
    """Check a domain now, and show what was found on the next page."""
    domain_checks.check([row])
    wrong = [each["text"] for each in row.findings if each["state"] != RecordState.RIGHT]
    if wrong:
        messages.warning(request, f"{row.domain}: {' '.join(wrong)}")
    else:
        messages.success(request, f"{row.domain}: all three records are right.")


def _shown(row: SenderDomain, form: RecordsForm) -> Shown:
    found = {each["record"]: each for each in row.findings}
    spf = row.spf or str(form.initial["spf"])
    lines = []
    for record in domain_records.to_publish(row.domain, spf, row.dkim_selector):
        finding = found.get(record.kind)
        words, colour = (
            STATES[RecordState(finding["state"])] if finding else ("Not checked", "info")
        )
        lines.append(Line(record, words, colour, finding["text"] if finding else ""))
    return Shown(row, form, lines)
