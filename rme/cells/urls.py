"""The paths of cells: the signed calls between them, and the pages by which people change cells."""

from django.urls import path

from rme.cells import owner, pauses
from rme.cells.people import answers, pages

urlpatterns = [
    path("cell/owner", owner.show),
    path("cell/pauses", pauses.answer),
    path("cell/organizations", answers.organizations),
    path("cell/log-out", answers.log_out),
    path("admin/account/cells/", pages.choose, name="cells"),
    path("admin/account/cells/enter/", pages.enter, name="cells_enter"),
    path("admin/account/cells/connect/", pages.connect, name="cells_connect"),
]
