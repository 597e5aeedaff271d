"""Pages of the console that can't be shown: why not, and where to go from there.

People who aren't logged in to the console get the plain page of `rme.core.http.pages`.
"""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from rme.core import errors
from rme.core.http.pages import CONSOLE, error_page, page_of


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for an address that leads nowhere, or nowhere for this person (404)."""
    return _page(
        request,
        errors.NotFound(_("Page not found.")),
        _("The address is wrong, what it led to was deleted, or your account can't see it."),
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for what a person's role doesn't allow (403)."""
    return _page(
        request,
        errors.Forbidden(_("Your role doesn't allow this.")),
        _("Ask an owner of your organization for a role that includes it."),
    )


def stale(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the page for a form without the token of its person's session (403)."""
    return _page(
        request,
        errors.Forbidden(_("This page was out of date.")),
        _("You have logged in again since you opened it, so nothing was done."),
    )


def _page(request: HttpRequest, error: errors.ApiError, advice: str) -> HttpResponse:
    user = getattr(request, "user", None)  # calls of programs have none
    if user is None or not user.is_staff or not request.path_info.startswith(CONSOLE):
        return error_page(request, error)
    context = {
        **admin.site.each_context(request),
        "title": error.message.rstrip("."),
        "advice": advice,
        "form_url": page_of(request) if request.method == "POST" else "",
    }
    return render(request, "admin/refused.html", context, status=error.status)
