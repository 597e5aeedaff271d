"""The log of provider callbacks, filtered by account and verdict."""

from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from messaging.console import access
from messaging.console.routing import lanes
from messaging.feedback import callback_log
from messaging.models import CallbackLogEntry, ProviderAccount
from rme.core import ids
from rme.tenants.access.roles import Permission

Verdict = CallbackLogEntry.Verdict
COLOURS = {
    Verdict.APPLIED: "good",
    Verdict.DUPLICATE: "muted-status",
    Verdict.NO_NEWS: "muted-status",
    Verdict.SIGNATURE: "bad",
    Verdict.UNREADABLE: "bad",
    Verdict.UNKNOWN_ID: "warn",
    Verdict.UNKNOWN_CODE: "warn",
}
MEANING = {
    Verdict.SIGNATURE: "Its secret is not the account's, or it was sent by somebody else: compare "
    "the secrets.",
    Verdict.UNREADABLE: "The provider writes something that is not understood. The log of the "
    "worker has the error.",
    Verdict.UNKNOWN_ID: "Another system shares the account, or the message was deleted.",
    Verdict.UNKNOWN_CODE: "The provider has a new code. Nothing was changed by it.",
}
"""What a verdict means that needs a person."""


class LogForm(forms.Form):
    """Filters of the log. An empty field matches all."""

    account = forms.ChoiceField(required=False)
    verdict = forms.ChoiceField(required=False, choices=[("", "All verdicts"), *Verdict.choices])

    def __init__(self, names: dict[int, str], data: QueryDict) -> None:
        super().__init__(data, label_suffix="", auto_id="log_%s")
        field = self.fields["account"]
        assert isinstance(field, forms.ChoiceField)
        pairs = sorted(names.items(), key=lambda pair: pair[1])
        field.choices = [("", "All accounts"), *((str(key), name) for key, name in pairs)]


@access.page_for(Permission.SEE_SETTINGS)
@require_GET
def show(request: HttpRequest, viewer: access.Viewer) -> HttpResponseBase:
    """Return a page of the log, the latest entries first."""
    rows = ProviderAccount.objects.filter(organization_id=viewer.organization_id)
    names = dict(rows.order_by("pk").values_list("pk", "name")[: lanes.MOST_ACCOUNTS])
    form = LogForm(names, request.GET)
    form.is_valid()
    account, verdict = (form.cleaned_data.get(name, "") for name in ("account", "verdict"))
    page = callback_log.find(
        viewer.organization_id,
        account_id=int(account) if account else None,
        verdict=verdict,
        before=_before(request),
    )
    query = {"account": account, "verdict": verdict, "before": str(page.following)}
    return access.show(
        request,
        viewer,
        "routing/callbacks",
        "Callbacks of providers",
        form=form,
        entries=[
            (
                each,
                names.get(each.account_id, ""),
                COLOURS[Verdict(each.verdict)],
                MEANING.get(Verdict(each.verdict), ""),
            )
            for each in page.entries
        ],
        following=f"?{urlencode(query)}" if page.following else "",
        is_filtered=bool(account or verdict),
        back=lanes.url(viewer),
    )


def _before(request: HttpRequest) -> UUID | None:
    return ids.parse(request.GET.get("before", ""))
