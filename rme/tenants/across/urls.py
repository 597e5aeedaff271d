"""Paths of a person's other cells, under `/admin/account/cells/`."""

from django.urls import path

from rme.tenants.across import pages

urlpatterns = [
    path("", pages.choose, name="cells"),
    path("enter/", pages.enter, name="cells_enter"),
    path("connect/", pages.connect, name="cells_connect"),
]
