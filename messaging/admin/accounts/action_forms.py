"""What the buttons of a provider account ask for."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from messaging.models import ProviderAccount
from rme.core import addresses

ORDER = ("priority", "weight")
"""The fields of the routing order."""


class ReasonForm(forms.Form):
    """The reason of a pause, which the list of accounts and the audit show."""

    reason = forms.CharField(max_length=500, widget=UnfoldAdminTextInputWidget)


class StateForm(forms.Form):
    """A state, a routing order and the reason for them."""

    state = forms.ChoiceField(
        choices=ProviderAccount.State.choices, widget=UnfoldAdminSelectWidget()
    )
    priority = forms.IntegerField(min_value=0, max_value=32767, widget=UnfoldAdminTextInputWidget)
    weight = forms.IntegerField(min_value=1, max_value=32767, widget=UnfoldAdminTextInputWidget)
    reason = forms.CharField(required=False, max_length=500, widget=UnfoldAdminTextInputWidget)

    def __init__(self, *args: object, row: ProviderAccount, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.row = row

    def clean(self) -> dict[str, Any]:
        """Require a reason, unless the account is simply activated."""
        given = super().clean() or {}
        active = given.get("state") == ProviderAccount.State.ACTIVE
        moved = any(given.get(name) != getattr(self.row, name) for name in ORDER)
        if not given.get("reason") and (moved or not active):
            self.add_error("reason", "Give a reason.")
        given["state_reason"] = "" if active else given.get("reason", "")
        return given


class TestForm(forms.Form):
    """The recipient of a test, checked as in any message."""

    __test__ = False  # pytest: this is no test
    to = forms.CharField(label="To", max_length=4096, widget=UnfoldAdminTextInputWidget)

    def __init__(self, *args: object, channel: str, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.channel = channel
        help_texts = {"EMAIL": "An email address.", "SMS": "A number like +41791234567."}
        self.fields["to"].help_text = help_texts.get(channel, "A device's token.")

    def clean_to(self) -> str:
        """Normalize the address."""
        typed: str = self.cleaned_data["to"]
        checks = {"EMAIL": addresses.email, "SMS": lambda text: addresses.phone(text, None)}
        normal = checks[self.channel](typed) if self.channel in checks else typed
        if normal is None:
            raise forms.ValidationError("This is not an address of that channel.")
        return normal
