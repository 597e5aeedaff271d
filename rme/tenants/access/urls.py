"""Paths of access: the pages of django-allauth that the console has, under `/admin/account/`."""

from allauth.account import views as account
from allauth.socialaccount import views as social
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from rme.tenants.access import audited, invitation_page, pages

__all__ = ["audited", "urlpatterns"]  # its receivers are there once it is imported

urlpatterns = [
    path(
        "login/",
        RedirectView.as_view(pattern_name="admin:login", query_string=True),
        name="account_login",
    ),
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
    path("2fa/", include("allauth.mfa.urls")),
    path("sessions/", include("allauth.usersessions.urls")),
    path("sso/cancelled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("sso/error/", social.login_error, name="socialaccount_login_error"),
    path("", include("allauth.socialaccount.providers.openid_connect.urls")),
]
