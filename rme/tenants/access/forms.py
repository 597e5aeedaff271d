"""Forms of log-in, with limits on guesses."""

from allauth.mfa.base.forms import (
    AuthenticateForm,
    BaseAuthenticateForm,
    ReauthenticateForm,
)
from allauth.mfa.totp.forms import ActivateTOTPForm
from django import forms
from unfold.widgets import UnfoldAdminEmailInputWidget

from rme.tenants.access import logins

USED = "This code was used before. Wait for the next one."


class _CountedCode(BaseAuthenticateForm):
    """A code of the second factor. Raise RateLimited after too many wrong ones."""

    def clean_code(self) -> str:
        with logins.counted_code(self.user.pk):
            code: str = super().clean_code()
            if not logins.is_first_use(self.user.pk, code):
                raise forms.ValidationError(USED)
        return code


class LimitedCode(_CountedCode, AuthenticateForm):
    """A code at log-in."""


class LimitedCodeAgain(_CountedCode, ReauthenticateForm):
    """A code before a change of the second factor."""


class FirstCode(ActivateTOTPForm):
    """The code that sets up an app; it can't be used again to log in."""

    def clean_code(self) -> str:
        code: str = super().clean_code()
        if not logins.is_first_use(self.user.pk, code):
            raise forms.ValidationError(USED)
        return code


class ResetForm(forms.Form):
    """The address to which a link for a new password goes."""

    email = forms.EmailField(
        max_length=254, widget=UnfoldAdminEmailInputWidget(attrs={"autocomplete": "email"})
    )
