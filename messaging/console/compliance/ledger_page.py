"""The chain of the ledger: its state, its verification, and the ledger as a file."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST

from messaging.consent import tasks
from messaging.consent.chain import checks
from messaging.consent.chain import export as ledger_file
from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.messages import explanations
from messaging.console.people import names
from messaging.models import ConsentEntry, LedgerCheck
from rme.core.http import downloads
from rme.tenants.access.roles import Permission
from rme.tenants.audit import Action

SHOWN = 10


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """The entry at which a chain is broken."""

    number: int
    """Its place in the chain, from 1."""
    entry: ConsentEntry | None
    person: str
    url: str

    @property
    def decision(self) -> str:
        """Return what the entry says, in words; empty if it is gone."""
        entry = self.entry
        return wording.decision(entry.status, entry.channel, entry.category) if entry else ""


@access.page_for(Permission.SEE_PEOPLE)
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the state of the chain; a POST orders a verification."""
    if request.method == "POST":
        viewer.require(Permission.CHANGE_PEOPLE)
        ordered = checks.begin(viewer.organization_id, viewer.user.get_username())
        access.note(viewer, Action.VERIFIED, ordered, label="the consent ledger")
        tasks.request_verification()
        text = ngettext(
            "Verifying %(number)s entry.", "Verifying %(number)s entries.", ordered.total
        )
        messages.success(request, text % {"number": f"{ordered.total:,}"})
        return HttpResponseRedirect(request.path)
    state = checks.state(viewer.organization_id)
    check = state.newest
    running = check is not None and check.state == LedgerCheck.State.RUNNING
    return access.show(
        request,
        viewer,
        "compliance/ledger",
        gettext("Consent ledger"),
        state=state,
        check=check,
        running=running,
        place=_place(viewer, check) if check and check.broken else None,
        history=checks.history(viewer.organization_id, limit=SHOWN),
        may_export=viewer.sees_addresses,
    )


def _place(viewer: Viewer, check: LedgerCheck) -> LedgerPlace:
    """Return the place at which a chain is broken, with the person whom the entry names now."""
    assert check.broken is not None
    entry = checks.place_of(viewer.organization_id, check.broken)
    contact_id = entry.contact_id if entry else ""
    if not contact_id:
        return LedgerPlace(check.entries + 1, entry, "", "")
    person = names.read(viewer, [contact_id]).of(contact_id)
    return LedgerPlace(
        check.entries + 1, entry, person, explanations.person_url(viewer, contact_id)
    )


@access.page_for(Permission.SEE_PEOPLE)
@require_POST
def export(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the ledger as CSV or as JSON, one entry a line, and record the export."""
    viewer.require(Permission.SEE_ADDRESSES)  # evidence may have some
    is_csv = request.POST.get("format") != "ndjson"
    form = "CSV" if is_csv else "NDJSON"
    kind, write = (
        (downloads.CSV, ledger_file.csv) if is_csv else (downloads.NDJSON, ledger_file.json_lines)
    )
    organization_id = viewer.organization_id
    response = downloads.file(request, f"consent-{organization_id}", kind, write, organization_id)
    access.note(viewer, Action.EXPORTED, text=f"consent ledger as {form}")
    return response
