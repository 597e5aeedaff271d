"""A provider account's page: check, test, activate, set aside or delete it."""

from collections.abc import Callable, Mapping

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from messaging import providers
from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.messages import message_list
from messaging.console.routing import lane_forms, lanes, provider_kinds, routing_words
from messaging.delivery import accounts
from messaging.domain.channels import Channel
from messaging.models import ProviderAccount
from messaging.policy import account_states, connection_check, organization_policy
from messaging.reports import account_hour
from rme.core import addresses, errors
from rme.core.http import checks
from rme.tenants.access.roles import Permission

State = ProviderAccount.State
CHANGES = 20
"""The latest changes of its circuit that the page shows."""
HINTS = {
    Channel.EMAIL: gettext_lazy("An email address."),
    Channel.SMS: gettext_lazy("A number like +41791234567."),
    Channel.PUSH: gettext_lazy("A device's token."),
}
INVALID = {
    Channel.EMAIL: gettext_lazy("This isn't an email address."),
    Channel.SMS: gettext_lazy("This isn't a phone number. Type one like +41791234567."),
}


class TestForm(forms.Form):
    """The recipient of a test, checked as in any message."""

    __test__ = False  # pytest: this is no test
    to = forms.CharField(max_length=4096, widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, viewer: Viewer, channel: str, data: QueryDict | None = None) -> None:
        email = viewer.user.email if channel == Channel.EMAIL else ""
        super().__init__(data, initial={"to": email}, label_suffix="", auto_id="test_%s")
        self.channel, self.region = channel, viewer.organization.region
        self.fields["to"].label = _("Send a test to")
        self.fields["to"].help_text = HINTS[Channel(channel)]

    def clean_to(self) -> str:
        """Normalize the address."""
        typed: str = self.cleaned_data["to"]
        normal: str | None = typed
        if self.channel == Channel.EMAIL:
            normal = addresses.email(typed)
        elif self.channel == Channel.SMS:
            normal = addresses.phone(typed, self.region)
        if normal is None:
            raise forms.ValidationError(INVALID[Channel(self.channel)])
        return normal


class AsideForm(forms.Form):
    """Why an account is paused or drained; the list of accounts and the audit show it."""

    why = lane_forms.reason_field()

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, label_suffix="", auto_id="aside_%s")


@access.page_for(Permission.SEE_SETTINGS)
def show(request: HttpRequest, viewer: Viewer, account_id: int) -> HttpResponseBase:
    """Return an account's page; a POST does what its button says."""
    account_rows = ProviderAccount.objects.filter(organization_id=viewer.organization_id)
    row = get_object_or_404(account_rows.select_related("organization"), pk=account_id)
    filled: dict[str, object] = {}
    if request.method == "POST":
        viewer.require(Permission.CHANGE_SETTINGS)
        if request.POST.get("do") == "delete" and request.POST.get("sure"):
            account_states.delete(row, viewer.actor)
            messages.success(request, _("%(account)s is deleted.") % {"account": row.name})
            return HttpResponseRedirect(lanes.url(viewer))
        act = _ACTS.get(request.POST.get("do", ""))
        if act is None:
            messages.error(request, _("Nothing was done. Choose one of the buttons."))
        filled = act(request, viewer, row) if act else {}
        if not filled:
            return HttpResponseRedirect(lanes.account_url(row))
    return access.show(
        request,
        viewer,
        "routing/account",
        row.name,
        row=row,
        **_about(viewer, row),
        **{"test": TestForm(viewer, row.channel), "aside": AsideForm(), **filled},
        may_change=viewer.may(Permission.CHANGE_SETTINGS),
    )


def _about(viewer: Viewer, row: ProviderAccount) -> dict[str, object]:
    """Return what the page says of an account."""
    hour, organization_id = account_hour.read([row])[row.pk], viewer.organization_id
    words, colour = routing_words.state(row, hour)
    kind = providers.REGISTRY.get(row.kind)
    own_email = viewer.user.email if row.channel == Channel.EMAIL else ""
    names = check_name, test_name = _check_name(row), _test_name(viewer, row)
    found = checks.find_each(organization_id, names)
    sent_test = found.get(test_name)
    return {
        "about": _summary(row),
        "own_email": own_email,
        "state_words": words,
        "state_colour": colour,
        "state_explained": routing_words.EXPLAINED[State(row.state)],
        "problem": wording.said(hour.sentence),
        "is_draft": row.state == State.DRAFT,
        "is_active": row.state == State.ACTIVE,
        "checked": connection_check.in_words(row),
        "check": found.get(check_name),
        "sent_test": sent_test,
        "test_outcome": _outcome(sent_test.result) if sent_test else "",
        "callback_help": _(kind.callback_help) if kind and kind.callback_help else "",
        "callback_url": organization_policy.account_of(row).callback_url,
        "outcomes": [
            (wording.outcome(each.outcome), each) for each in account_hour.read_outcomes(row)
        ],
        "changes": routing_words.changes(accounts.latest_changes([row.pk], CHANGES)[row.pk]),
        "callbacks_url": f"{reverse('console:callbacks', args=[organization_id])}?account={row.pk}",
        "hour": routing_words.hour(hour),
        "has_settings": kind is not None,
        "failures": message_list.failures(viewer, row.name),
        "back": lanes.url(viewer),
    }


def _outcome(result: Mapping[str, str]) -> str:
    """Return what a test came to; empty while it runs."""
    words = [wording.outcome(result.get("outcome", "")), result.get("reason", "")]
    return ": ".join(filter(None, words))


def _summary(row: ProviderAccount) -> str:
    """Return the provider, the channel, the recipients and the rate of an account."""
    parts = [provider_kinds.label_of(row), wording.channel(row.channel), ", ".join(row.match)]
    if row.rate:
        parts.append(_("%(rate)s per second") % {"rate": f"{row.rate:,}"})
    return " · ".join(filter(None, parts))


def check(request: HttpRequest, viewer: Viewer, row: ProviderAccount) -> dict[str, object]:
    """Start a log-in without sending; the next page shows its progress and its result."""
    _start(request, viewer, _check_name(row), connection_check.check, row.pk, viewer.actor)
    return {}


def check_and_activate(request: HttpRequest, viewer: Viewer, row: ProviderAccount) -> None:
    """Start a log-in without sending, after which the account is active if that works."""
    work = account_states.check_and_activate
    _start(request, viewer, _check_name(row), work, row.pk, viewer.actor)


def _send_test(request: HttpRequest, viewer: Viewer, row: ProviderAccount) -> dict[str, object]:
    """Start to send one message through the account alone. No message is recorded."""
    form = TestForm(viewer, row.channel, request.POST)
    if not form.is_valid():
        return {"test": form}
    to, name = form.cleaned_data["to"], _test_name(viewer, row)
    begun = _start(request, viewer, name, connection_check.send_test, row.pk, viewer.actor, to)
    return {} if begun else {"test": form}


def _start(
    request: HttpRequest, viewer: Viewer, name: str, work: checks.Work, *args: object
) -> bool:
    """Start a check and return True; or say why not."""
    try:
        checks.start(request, viewer.organization_id, name, work, viewer.organization_id, *args)
    except errors.RateLimited as refusal:
        messages.warning(request, _("Not done. %(reason)s") % {"reason": refusal.message})
        return False
    return True


def _check_name(row: ProviderAccount) -> str:
    return f"account {row.pk}"


def _test_name(viewer: Viewer, row: ProviderAccount) -> str:
    """Return the name of a person's tests of an account: the recipient is for this person alone."""
    return f"account {row.pk} test by {viewer.user.pk}"


def _activate(request: HttpRequest, viewer: Viewer, row: ProviderAccount) -> dict[str, object]:
    """Activate an account. One that no check has found to work is asked about once more."""
    if account_states.needs_check(row) and not request.POST.get("sure"):
        return {"asks_again": True}
    account_states.change([row], State.ACTIVE, viewer.actor)
    done = _("%(account)s is active: the routing order uses it.")
    messages.success(request, done % {"account": row.name})
    return {}


def _set_aside(state: State, done: Promise) -> Callable[..., dict[str, object]]:
    """Return the act that pauses or drains an account, with a reason."""

    def act(request: HttpRequest, viewer: Viewer, row: ProviderAccount) -> dict[str, object]:
        form = AsideForm(request.POST)
        if row.state == State.DRAFT:
            refusal = _("%(account)s isn't active yet, so it sends nothing.")
            messages.error(request, refusal % {"account": row.name})
            return {}
        if not form.is_valid():
            return {"aside": form}
        account_states.change([row], state, viewer.actor, form.cleaned_data["why"])
        messages.success(request, str(done) % {"account": row.name})
        return {}

    return act


_ACTS: dict[str, Callable[[HttpRequest, Viewer, ProviderAccount], dict[str, object]]] = {
    "check": check,
    "test": _send_test,
    "activate": _activate,
    "pause": _set_aside(State.PAUSED, gettext_lazy("%(account)s is paused.")),
    "drain": _set_aside(State.DRAINING, gettext_lazy("%(account)s is draining.")),
}
"""What a POST does, by its `do`; an act returns what the page shows again, or nothing."""
