from functools import partial

from django.apps import AppConfig
from django.contrib.admin import apps
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject
from unfold.sites import UnfoldAdminSite

from rme.celery import app


class AdminSite(UnfoldAdminSite):
    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> object:
        """Return the list of models that a person may see, by application.

        It is made when it is first read: each page has it in its context, and most pages show the
        sidebar alone.
        """
        return SimpleLazyObject(partial(super().get_app_list, request, app_label))


class AdminConfig(apps.AdminConfig):
    default = False
    default_site = "rme.apps.AdminSite"


class RmeConfig(AppConfig):
    name = "rme"
    default = True

    def ready(self) -> None:
        """Use the service's Celery app in all threads, so that tasks know their broker."""
        app.set_default()
