"""Pages for provider accounts: their settings, their last hour, and setting them aside."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html, format_html_join
from unfold.decorators import action
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from messaging import providers
from messaging.admin.account_form import MAIN, SECRET_FIELDS, AccountForm, setting_name
from messaging.admin.policy import PolicyAdmin
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from messaging.reports import account_hour
from rme.core import addresses, ids
from rme.core.db import clock
from rme.core.outbound import outbound_transport
from rme.core.provider import Content, Dispatch, Email, Push, Sms
from rme.tenants.roles import OWNERS

ORDER = ("priority", "weight")


@admin.register(ProviderAccount)
class ProviderAccountAdmin(PolicyAdmin):
    writers: ClassVar[frozenset[str]] = OWNERS
    form = AccountForm
    list_display = (
        "name",
        "kind",
        "channel",
        "priority",
        "weight",
        "rate",
        "state",
        "state_reason",
        "circuit",
        "hour",
        "organization",
    )
    list_filter = ("channel", "kind", "state")
    search_fields = ("name",)
    readonly_fields = ("public_id", "callback_url", "state_reason", "last_hour")
    actions: ClassVar[list[str]] = ["pause", "activate"]
    actions_detail: ClassVar[list[str]] = ["test_send", "set_aside"]
    secret_fields: ClassVar[frozenset[str]] = SECRET_FIELDS
    # The theme shows a field while its expression holds: those of the chosen kind. An account that
    # is there has no choice of kind, and the page has only its fields.
    conditional_fields: ClassVar[dict[str, str]] = {
        setting_name(kind, name): f"typeof kind === 'undefined' || kind === '{kind}'"
        for kind, provider in providers.REGISTRY.items()
        for name in provider.Settings.model_fields
    }

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        told = ("state_reason", "callback_url", "last_hour") if obj else ()
        main = [(None, {"fields": (*MAIN, "public_id", *told)})]
        if obj and not self.has_change_permission(request, obj):
            return main  # the settings are fields of the form, which a reader does not have
        return main + [
            (
                f"{provider.label}: settings",
                {"fields": [setting_name(kind, name) for name in provider.Settings.model_fields]},
            )
            for kind, provider in providers.REGISTRY.items()
            if provider.Settings.model_fields and (obj is None or obj.kind == kind)
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = super().get_readonly_fields(request, obj)
        return (*shown, "kind", "channel") if obj else shown

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Read the last hour of all accounts of the page at once."""
        shown = super().get_changelist_instance(request)
        sums = account_hour.read_summaries(shown.result_list)
        for row in shown.result_list:
            row.sum = sums[row.pk]
        return shown

    @admin.display(description="Circuit")
    def circuit(self, row: Any) -> str:
        """Show whether the account has its turn."""
        return str(row.sum.circuit)

    @admin.display(description="Last hour")
    def hour(self, row: Any) -> str:
        """Show what became of the account's sends."""
        said = row.sum
        if not said.sends:
            return "nothing sent"
        text = f"{said.sends} sent: {said.accepted} taken, {said.failed} failed"
        return text if said.p95_ms is None else f"{text}, p95 {said.p95_ms} ms"

    @admin.display(description="Callback URL")
    def callback_url(self, row: ProviderAccount) -> str:
        """Show where the provider is to call, if it has to be told."""
        return organization_policy.account_of(row).callback_url

    @admin.display(description="Last hour")
    def last_hour(self, row: ProviderAccount) -> str:
        """Show what became of the account's sends, and how its circuit stands."""
        hour = account_hour.read(row)
        lines = format_html_join(
            "",
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            (
                (each.sends, each.outcome, each.reason, each.p95_ms, clock.iso(each.last_at))
                for each in hour.rows
            ),
        )
        head = format_html_join(
            "",
            '<th scope="col" class="text-left pr-4">{}</th>',
            ((name,) for name in ("Sends", "Outcome", "Reason", "p95, ms", "Last")),
        )
        table = "<p>Circuit: {}</p><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
        return format_html(table, hour.circuit, head, lines)

    def _set_state(
        self, request: HttpRequest, queryset: QuerySet[Any], state: str, reason: str = ""
    ) -> None:
        for row in queryset:
            if not self.has_change_permission(request, row):
                continue  # an owner here may be a mere reader there
            ProviderAccount.objects.filter(pk=row.pk).update(state=state, state_reason=reason)
            self.changed(row.organization_id)
            why = f" ({reason})" if reason else ""
            self.note(request, row, f"State: {row.state} → {state}{why}")

    @action(description="Pause, drain or reorder", url_path="set-aside", permissions=["change"])
    def set_aside(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Let the account take nothing, or go before others, and say why."""
        row = self.get_object(request, object_id)
        asked = {name: getattr(row, name) for name in ("state", *ORDER)}
        form = StateForm(request.POST or None, initial=asked, row=row)
        result = ""
        if form.is_valid():
            given = form.cleaned_data
            self._reorder(request, row, given)
            if given["state"] != row.state or given["state_reason"] != row.state_reason:
                chosen = ProviderAccount.objects.filter(pk=row.pk)
                self._set_state(request, chosen, given["state"], given["state_reason"])
            result = f"{row.name} is {given['state']}."
        question = (
            f"What {row.name} has in hand is finished; others take what would be its turn. "
            "Paused, it takes nothing; draining, it ends what it was tried for before. "
            "A lower priority goes first; the weight is its share among equals."
        )
        title = "Pause, drain or reorder"
        context = {"title": title, "question": question, "form": form, "result": result}
        return self.show(request, "ask", row, **context)

    def _reorder(self, request: HttpRequest, row: ProviderAccount, given: dict[str, Any]) -> None:
        """Give the account another place among the others, and keep the reason in its history."""
        moved = {name: given[name] for name in ORDER if given[name] != getattr(row, name)}
        if moved:
            ProviderAccount.objects.filter(pk=row.pk).update(**moved)
            self.changed(row.organization_id)
            steps = [f"{name}: {getattr(row, name)} → {moved[name]}" for name in moved]
            self.note(request, row, f"Order: {', '.join(steps)} ({given['reason']})")

    @admin.action(description="Pause", permissions=["change"])
    def pause(self, request: HttpRequest, queryset: QuerySet[ProviderAccount]) -> None:
        """Let accounts take nothing."""
        self._set_state(request, queryset, ProviderAccount.State.PAUSED)

    @admin.action(description="Activate", permissions=["change"])
    def activate(self, request: HttpRequest, queryset: QuerySet[ProviderAccount]) -> None:
        """Let accounts take messages again."""
        self._set_state(request, queryset, ProviderAccount.State.ACTIVE)

    @action(description="Test send", url_path="test-send", permissions=["change"])
    def test_send(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send one message by this account alone, and show what the provider answered."""
        row = self.get_object(request, object_id)
        form = TestForm(request.POST or None, channel=row.channel)
        result = ""
        if form.is_valid():
            result = test_send(row, form.cleaned_data["to"])
            self.note(request, row, f"Test send: {result}")
        question = f"Send a test by {row.name}. No message is recorded."
        context = {"title": "Test send", "question": question, "form": form, "result": result}
        return self.show(request, "ask", row, **context)


class StateForm(forms.Form):
    """A state and a place among the others, and why."""

    state = forms.ChoiceField(
        choices=ProviderAccount.State.choices, widget=UnfoldAdminSelectWidget()
    )
    priority = forms.IntegerField(min_value=0, max_value=32767, widget=UnfoldAdminTextInputWidget)
    weight = forms.IntegerField(min_value=1, max_value=32767, widget=UnfoldAdminTextInputWidget)
    reason = forms.CharField(required=False, max_length=500, widget=UnfoldAdminTextInputWidget)

    def __init__(self, *args: Any, row: ProviderAccount, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.row = row

    def clean(self) -> dict[str, Any]:
        """Ask for the reason of what others will wonder at."""
        given = super().clean() or {}
        active = given.get("state") == ProviderAccount.State.ACTIVE
        moved = any(given.get(name) != getattr(self.row, name) for name in ORDER)
        if not given.get("reason") and (moved or not active):
            self.add_error("reason", "Say why: others will wonder.")
        given["state_reason"] = "" if active else given.get("reason", "")
        return given


class TestForm(forms.Form):
    """Where a test goes: checked like any recipient."""

    __test__ = False  # pytest: this is no test
    to = forms.CharField(label="To", max_length=4096, widget=UnfoldAdminTextInputWidget)

    def __init__(self, *args: Any, channel: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.channel = channel
        told = {"EMAIL": "An email address.", "SMS": "A number like +41791234567."}
        self.fields["to"].help_text = told.get(channel, "A device's token.")

    def clean_to(self) -> str:
        """Fold the address."""
        typed: str = self.cleaned_data["to"]
        checks = {"EMAIL": addresses.email, "SMS": lambda text: addresses.phone(text, None)}
        folded = checks[self.channel](typed) if self.channel in checks else typed
        if folded is None:
            raise forms.ValidationError("This is no address of that channel.")
        return folded


def test_send(account: ProviderAccount, to: str) -> str:
    """Send a test message by one account; gives the outcome in words."""
    ready = organization_policy.account_of(account)
    if ready.provider is None:
        return "The account's settings are broken."
    content = _test_content(account, to)
    (outcome,) = ready.provider.send([Dispatch(ids.new_id(), content)], outbound_transport())
    reason = getattr(outcome, "reason", "")
    return f"{type(outcome).__name__}{': ' if reason else ''}{reason}"


def _test_content(account: ProviderAccount, to: str) -> Content:
    text = f"This is a test of the account {account.name}."
    match account.channel:
        case "SMS":
            return Sms(to=to, text=text)
        case "PUSH":
            kind = providers.REGISTRY[account.kind]
            platform = next(iter(kind.platforms), "ANDROID")
            return Push(token=to, platform=platform, title="Test", body=text)
    verified = organization_policy.of(account.organization_id).default_domain
    domain = verified.domain if verified else "localhost.localdomain"
    return Email(
        to=to,
        from_address=f"{verified.local_part if verified else 'no-reply'}@{domain}",
        from_name=account.organization.name,
        subject="Test",
        text=text,
        message_id=f"{ids.new_text_id()}@{domain}",
    )
