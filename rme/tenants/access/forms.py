"""Forms of log-in, with limits on guesses."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import (
    AuthenticateForm,
    BaseAuthenticateForm,
    ReauthenticateForm,
)
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from allauth.mfa.webauthn.internal import auth
from django import forms
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminEmailInputWidget

from rme.core.http.json_field import JsonField
from rme.tenants.access.limits import logins

USED = _("This code was used before. Wait for the next one.")


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


UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, struct.error)
"""What fido2 raises for a passkey's answer that has no proper shape."""


@contextmanager
def _answered_challenge() -> Iterator[None]:
    """Check a passkey's answer in the block. Raise ValidationError if it can't be read, or if its
    challenge was answered before.

    The session holds the challenge, and requests at the same moment all read it.
    """
    challenge = (auth.get_state() or {}).get("challenge", "")
    try:
        yield
    except UNREADABLE as error:
        raise get_adapter().validation_error("incorrect_code") from error
    if not logins.is_first_answer(challenge):
        raise get_adapter().validation_error("incorrect_code")


class _CheckedPasskey(AuthenticateWebAuthnForm):
    """The answer of a passkey to a challenge, which counts once."""

    credential = JsonField(widget=forms.HiddenInput)

    def clean_credential(self) -> Authenticator:
        with _answered_challenge():
            authenticator: Authenticator = super().clean_credential()
        return authenticator


class PasskeyLogin(_CheckedPasskey, LoginWebAuthnForm):
    """A log-in without a password."""


class PasskeyAgain(_CheckedPasskey, ReauthenticateWebAuthnForm):
    """A passkey before a change of the second factor."""


class PasskeyAsFactor(_CheckedPasskey):
    """A passkey or security key after the password."""


class NewPasskey(AddWebAuthnForm):
    """A passkey that a person adds."""

    credential = JsonField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["passwordless"].initial = True

    def clean(self) -> dict[str, Any]:
        is_read = bool(self.cleaned_data.get("credential"))
        with _answered_challenge() if is_read else nullcontext():
            cleaned: dict[str, Any] = super().clean()
        return cleaned


class ResetForm(forms.Form):
    """The address to which a link for a new password goes."""

    email = forms.EmailField(
        max_length=254,
        label=_("Email"),
        widget=UnfoldAdminEmailInputWidget(attrs={"autocomplete": "email"}),
    )
