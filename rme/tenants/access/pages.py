"""The pages of log-in and of a forgotten password, and the frame of all pages of access."""

from typing import Any

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.views import LoginView
from django.core.exceptions import BadRequest
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.generic import FormView
from unfold.forms import AuthenticationForm

from rme.core.process import task_requests
from rme.tenants.access.forms import ResetForm
from rme.tenants.access.limits import logins

PREFIX = "/admin/account/"
RESET_TASK = "tenants.send_password_reset"


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return what the theme needs around django-allauth's pages (a context processor)."""
    if not request.path_info.startswith(PREFIX):
        return {}
    return {"title": _("Your account"), **admin.site.each_context(request)}


@method_decorator(never_cache, name="dispatch")
class LogInPage(LoginView):
    """Log-in by password, passkey or single sign-on; a second factor follows a password."""

    template_name = "admin/login.html"
    authentication_form = AuthenticationForm
    redirect_authenticated_user = False

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if admin.site.has_permission(request):
            return HttpResponseRedirect(self.get_success_url())
        if "\0" in request.GET.get(self.redirect_field_name, ""):
            raise BadRequest
        return super().get(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        # A fresh log-in is proof enough to set a second factor up.
        record_authentication(self.request, user, method="password", reauthenticated=True)
        response: HttpResponse = perform_login(
            self.request, Login(user=user, redirect_url=self.get_success_url())
        )
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        return {
            **context,
            **admin.site.each_context(self.request),
            "title": _("Log in"),
            "app_path": self.request.get_full_path(),
            "username": self.request.user.get_username(),
            "mail_enabled": settings.MAIL_ENABLED,
            "oidc_name": settings.OIDC_NAME if settings.OIDC_URL else "",
        }


class ForgottenPage(FormView):
    """Request a link for a new password.

    The answer is the same for each address, and so is its time: a worker looks for the account.
    """

    template_name = "account/password_reset.html"
    form_class = ResetForm

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> Any:
        if not settings.MAIL_ENABLED:
            messages.error(request, _("This deployment sends no mail. Ask a superuser."))
            return redirect("admin:login")
        return super().dispatch(request, *args, **kwargs)

    def form_valid(self, form: Form) -> HttpResponse:
        logins.count_request(self.request, "reset")
        task_requests.request_with(RESET_TASK, form.cleaned_data["email"])
        return HttpResponseRedirect(reverse("account_reset_password_done"))
