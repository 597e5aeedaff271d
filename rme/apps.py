from functools import partial
from typing import Any

from django.apps import AppConfig
from django.apps import apps as registry
from django.contrib.admin import apps
from django.core import checks
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy
from unfold.sites import UnfoldAdminSite

from rme.celery import app
from rme.core.environment.deploy_checks import unreachable_servers


class AdminSite(UnfoldAdminSite):
    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> object:
        """Return the list of models that a person may see, by application.

        It is made when it is first read: each page has it in its context, and most pages show the
        sidebar alone.
        """
        return SimpleLazyObject(partial(super().get_app_list, request, app_label))

    def get_urls(self) -> list[URLPattern | URLResolver]:
        urls: list[URLPattern | URLResolver] = super().get_urls()
        return [path("theme.css", self.theme_css, name="theme_css"), *urls]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the context of every page, which loads the theme's colours from a file.

        The content security policy allows no style sheet inside a page.
        """
        context: dict[str, Any] = super().each_context(request)
        return {**context, "colors": {}, "styles": [*context["styles"], reverse("admin:theme_css")]}

    def theme_css(self, request: HttpRequest) -> HttpResponse:
        """Return the theme's colours and radius as CSS variables."""
        context = super().each_context(request)
        lines = [
            f"--color-{name}-{weight}: {value};"
            for name, weights in context["colors"].items()
            for weight, value in weights.items()
        ]
        if radius := context["border_radius"]:
            lines.append(f"--border-radius: {radius};")
        headers = {"Cache-Control": "public, max-age=3600"}
        return HttpResponse(f":root {{ {' '.join(lines)} }}\n", "text/css", headers=headers)


class AdminConfig(apps.AdminConfig):
    default = False
    default_site = "rme.apps.AdminSite"

    def ready(self) -> None:
        """Import the admin's pages, whose forms take the names of columns for labels."""
        translate_names()
        super().ready()


def translate_names() -> None:
    """Have the names of tables and columns translated, which Django makes of those in the code."""
    for model in registry.get_models():
        meta = model._meta
        # By default the plural appends an s when it is shown, which other languages don't do.
        meta.verbose_name_plural = gettext_lazy(str(meta.verbose_name_plural))
        named: list[Any] = [meta, *meta.local_fields, *meta.local_many_to_many]
        for each in named:
            each.verbose_name = _lazy(each.verbose_name)


def _lazy(name: Any) -> Any:
    return gettext_lazy(name) if isinstance(name, str) else name


class RmeConfig(AppConfig):
    name = "rme"
    default = True

    def ready(self) -> None:
        """Use the service's Celery app in all threads, so that tasks know their broker."""
        app.set_default()
        checks.register(unreachable_servers, deploy=True)
