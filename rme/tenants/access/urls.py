"""Paths of access: the pages of django-allauth that the console has, under `/admin/account/`."""

from allauth.account import views as account
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.socialaccount import views as social
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from rme.tenants.access import audited, invitation_page, pages, profile

__all__ = ["audited", "urlpatterns"]  # its receivers are there once it is imported

_CHANGES = {
    "totp/activate/": totp.activate_totp,
    "totp/deactivate/": totp.deactivate_totp,
    "recovery-codes/generate/": recovery_codes.generate_recovery_codes,
    "webauthn/add/": webauthn.add_webauthn,
    "webauthn/keys/<int:pk>/remove/": webauthn.remove_webauthn,
}
"""The pages of django-allauth that add or remove a second factor, which the audit records."""

urlpatterns = [
    path(
        "login/",
        RedirectView.as_view(pattern_name="admin:login", query_string=True),
        name="account_login",
    ),
    path("profile/", profile.show, name="profile"),
    path("email/", profile.change_address, name="address"),
    path("email/<str:token>/", profile.confirm, name="address_confirm"),
    path("logout/", account.logout, name="account_logout"),
    path("reauthenticate/", account.reauthenticate, name="account_reauthenticate"),
    path("password/reset/", pages.ForgottenPage.as_view(), name="account_reset_password"),
    path("password/reset/done/", account.password_reset_done, name="account_reset_password_done"),
    re_path(
        r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        account.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "password/reset/key/done/",
        account.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("invitation/<str:token>/", invitation_page.accept, name="invitation"),
    # First, so that they answer; their names are in the list that follows.
    *(path(f"2fa/{route}", audited.of_factors(view)) for route, view in _CHANGES.items()),
    path("2fa/", include("allauth.mfa.urls")),
    path("sessions/", include("allauth.usersessions.urls")),
    path("sso/cancelled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("sso/error/", social.login_error, name="socialaccount_login_error"),
    path("", include("allauth.socialaccount.providers.openid_connect.urls")),
]
