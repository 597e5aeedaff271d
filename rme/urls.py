"""Every path of the deployment."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from rme import metrics, probes

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("livez", probes.livez),
    path("readyz", probes.readyz),
    path("metrics", metrics.show),
    path("rme/v1/", include("messaging.urls")),
    path("p/", include("messaging.public_urls")),
    path("", include("rme.tenants.urls")),
    path("admin/", admin.site.urls),
]
