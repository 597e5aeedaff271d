"""Forms of log-in, with limits on guesses."""

from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from django import forms
from unfold.widgets import UnfoldAdminEmailInputWidget

from rme.tenants import logins

USED = "This code was used before. Wait for the next one."


class LimitedCode(AuthenticateForm):
    """A code of the second factor at log-in. Raise RateLimited after too many wrong ones."""

    def clean_code(self) -> str:
        with logins.counted_code(self.user.pk):
            code: str = super().clean_code()
            if not logins.is_first_use(self.user.pk, code):
                raise forms.ValidationError(USED)
        return code


class LimitedCodeAgain(ReauthenticateForm):
    """A code of the second factor before a change of it. Raise RateLimited likewise."""

    def clean_code(self) -> str:
        with logins.counted_code(self.user.pk):
            code: str = super().clean_code()
            if not logins.is_first_use(self.user.pk, code):
                raise forms.ValidationError(USED)
        return code


class ResetForm(forms.Form):
    """The address to which a link for a new password goes."""

    email = forms.EmailField(
        max_length=254, widget=UnfoldAdminEmailInputWidget(attrs={"autocomplete": "email"})
    )
