"""The log of provider callbacks, and the page of one."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from messaging.console import access
from messaging.console.access import Viewer
from messaging.console.filters import list_page
from messaging.console.filters.filter_form import FilterForm
from messaging.console.routing import lanes
from messaging.console.routing.lane_forms import MOST_ACCOUNTS
from messaging.feedback import callback_log
from messaging.models import CallbackLogEntry, ProviderAccount
from rme.components.tables import Cell, Column, Target
from rme.core import ids
from rme.tenants.access.roles import Permission

Verdict = CallbackLogEntry.Verdict
COLOURS = {
    Verdict.APPLIED: "good",
    Verdict.DUPLICATE: "muted",
    Verdict.NO_NEWS: "muted",
    Verdict.SIGNATURE: "bad",
    Verdict.UNREADABLE: "bad",
    Verdict.UNKNOWN_ID: "warn",
    Verdict.UNKNOWN_CODE: "warn",
}
MEANING: Mapping[Verdict, Promise] = {
    Verdict.SIGNATURE: _(
        "The account has another secret, or somebody else sent it. Compare the secrets."
    ),
    Verdict.UNREADABLE: _(
        "rme doesn't understand what the provider wrote. The worker's log has the error."
    ),
    Verdict.UNKNOWN_ID: _("Another system shares the account, or the message was deleted."),
    Verdict.UNKNOWN_CODE: _("The provider sent a new code. It changed nothing."),
}
"""What a verdict means that needs a person."""


class CallbackFilterForm(FilterForm):
    account = forms.TypedChoiceField(
        required=False, label=_("Account"), empty_value=None, coerce=int
    )
    verdict = forms.ChoiceField(
        required=False, label=_("Verdict"), choices=[("", _("Any verdict")), *Verdict.choices]
    )

    def __init__(self, data: Mapping[str, str], names: Mapping[int, str]) -> None:
        super().__init__(data)
        options = sorted(((str(key), name) for key, name in names.items()), key=itemgetter(1))
        self.offer("account", [("", gettext("Any account")), *options])


@dataclass(frozen=True, slots=True)
class CallbackLine:
    """A callback in words, or several that rme refused within a second."""

    entry: CallbackLogEntry
    account: str
    """The name of its account; empty if there is none any more."""

    @property
    def verdict(self) -> Cell:
        verdict = Verdict(self.entry.verdict)
        return Cell(str(verdict.label), self.entry.detail, COLOURS[verdict])

    @property
    def meaning(self) -> str:
        return str(MEANING.get(Verdict(self.entry.verdict), ""))


COLUMNS: list[Column[CallbackLine]] = [
    Column("account", _("Account"), lambda line: Cell(line.account or gettext("Deleted account"))),
    Column("verdict", _("Verdict"), lambda line: line.verdict, "medium"),
    Column("meaning", _("Meaning"), lambda line: Cell(line.meaning), "wide"),
    Column("times", _("Times"), lambda line: Cell(f"{line.entry.count:,}"), "small"),
    Column("method", _("Method"), lambda line: Cell(line.entry.method), "small", is_shown=False),
    Column("size", _("Size"), lambda line: Cell(filesizeformat(line.entry.size)), "small"),
    Column("received", _("Time"), lambda line: Cell(at=line.entry.at), "small"),
]


def _target(viewer: Viewer, line: CallbackLine) -> Target:
    url = reverse("console:callback", args=[viewer.organization_id, line.entry.id])
    name = gettext("callback of %(account)s") % {
        "account": line.account or gettext("a deleted account")
    }
    return Target(url, name, line.entry.at)


@access.page_for(Permission.SEE_SETTINGS)
@list_page.takes_columns
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return a page of the log, the latest entries first."""
    names = _account_names(viewer)
    form = CallbackFilterForm(request.GET, names)
    filters = form.valid_values()
    page = callback_log.find(
        viewer.organization_id,
        account_id=filters.get("account"),
        verdict=filters.get("verdict", ""),
        before=ids.parse(request.GET.get("after", "")),
    )
    return list_page.show(
        request,
        viewer,
        "routing/callbacks",
        gettext("Callback log"),
        columns=COLUMNS,
        lines=[CallbackLine(each, names.get(each.account_id, "")) for each in page.entries],
        target=partial(_target, viewer),
        form=form,
        following=page.following,
        searched_until=ids.moment(page.following) if page.following else None,
        days=settings.CALLBACK_LOG_DAYS,
        back=lanes.url(viewer),
    )


@access.page_for(Permission.SEE_SETTINGS)
@require_GET
def show_one(request: HttpRequest, viewer: Viewer, callback_id: UUID) -> HttpResponseBase:
    """Return the page of an entry of the log."""
    rows = CallbackLogEntry.objects.filter(organization_id=viewer.organization_id)
    entry = get_object_or_404(rows, id=callback_id)
    line = CallbackLine(entry, _account_names(viewer).get(entry.account_id, ""))
    links = []
    if line.account:
        url = reverse("console:provider", args=[viewer.organization_id, entry.account_id])
        links.append((url, gettext("Open account")))
    back = reverse("console:callbacks", args=[viewer.organization_id]), gettext("All callbacks")
    title = gettext("Callback")
    return list_page.show_row(request, viewer, title, COLUMNS, line, links=links, back=back)


def _account_names(viewer: Viewer) -> dict[int, str]:
    """Return the names of the organization's accounts by their ids; one query."""
    rows = ProviderAccount.objects.filter(organization_id=viewer.organization_id)
    return dict(rows.order_by("pk").values_list("pk", "name")[:MOST_ACCOUNTS])
