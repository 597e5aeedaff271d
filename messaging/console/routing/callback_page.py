"""The log of provider callbacks, filtered by account and verdict."""

from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from messaging.console import access
from messaging.console.routing import lanes
from messaging.console.routing.lane_forms import MOST_ACCOUNTS
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
    Verdict.SIGNATURE: gettext_lazy(
        "The account has another secret, or somebody else sent it. Compare the secrets."
    ),
    Verdict.UNREADABLE: gettext_lazy(
        "rme doesn't understand what the provider wrote. The worker's log has the error."
    ),
    Verdict.UNKNOWN_ID: gettext_lazy(
        "Another system shares the account, or the message was deleted."
    ),
    Verdict.UNKNOWN_CODE: gettext_lazy("The provider sent a new code. It changed nothing."),
}
"""What a verdict means that needs a person."""


class LogForm(forms.Form):
    """Filters of the log. An empty field matches all."""

    account = forms.ChoiceField(required=False)
    verdict = forms.ChoiceField(
        required=False, choices=[("", gettext_lazy("All verdicts")), *Verdict.choices]
    )

    def __init__(self, names: dict[int, str], data: QueryDict) -> None:
        super().__init__(data, label_suffix="", auto_id="log_%s")
        field = self.fields["account"]
        assert isinstance(field, forms.ChoiceField)
        pairs = sorted(names.items(), key=lambda pair: pair[1])
        field.choices = [("", _("All accounts")), *((str(key), name) for key, name in pairs)]


@access.page_for(Permission.SEE_SETTINGS)
@require_GET
def show(request: HttpRequest, viewer: access.Viewer) -> HttpResponseBase:
    """Return a page of the log, the latest entries first."""
    rows = ProviderAccount.objects.filter(organization_id=viewer.organization_id)
    names = dict(rows.order_by("pk").values_list("pk", "name")[:MOST_ACCOUNTS])
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
        _("Callback log"),
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
