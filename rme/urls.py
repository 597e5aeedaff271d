"""Every path of the deployment."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("rme/v1/", include("messaging.urls")),
    path("", include("rme.tenants.urls")),
    path("admin/", admin.site.urls),
]
