"""All paths of the deployment, and the style guide's, which only DEBUG has."""

from django.contrib import admin
from django.urls import include, path

from rme.components import style_guide

urlpatterns = [
    path("admin/style-guide/", admin.site.admin_view(style_guide.show)),
    path("", include("rme.urls")),
]
