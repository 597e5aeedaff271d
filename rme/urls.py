"""All paths of the deployment."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from messaging.admin import first_steps
from messaging.feedback import views
from messaging.pages import push_demo
from rme import cell_owner, metrics, probe_views
from rme.tenants import cells, logins
from rme.tenants.access import acting_pages
from rme.tenants.access import pages as access_pages
from rme.tenants.across import calls as across_calls
from rme.tenants.admin import role_page

handler500 = "rme.core.http.api.failed"

urlpatterns = [
    # first, because Django tries one after the other
    path("rme/v1/", include("messaging.api.urls")),
    path("", RedirectView.as_view(url="/admin/")),
    path("livez", probe_views.livez),
    path("readyz", probe_views.readyz),
    path("metrics", metrics.show),
    path("cell/owner", cell_owner.show),
    path("cell/pauses", cells.answer_pauses),
    path("cell/organizations", across_calls.organizations),
    path("cell/log-out", across_calls.log_out),
    path(f"{settings.BOT_BASE_PATH}/".lstrip("/"), include("bot.urls")),
    path("hooks/<str:public_id>", views.receive),
    path("p/", include("messaging.pages.urls")),
    path("t/", include("messaging.pages.tracking_urls")),
    path("push-demo", push_demo.show),
    path("push-demo/worker.js", push_demo.worker),
    path("push-demo/devices", push_demo.register),
    path("push-demo/send", push_demo.send),
    path("push-demo/replace", push_demo.replace),
    path("", include("rme.tenants.urls")),
    path("admin/login/", access_pages.LogInPage.as_view()),
    path("admin/account/roles/", admin.site.admin_view(role_page.show), name="roles"),
    path("admin/account/cells/", include("rme.tenants.across.urls")),
    path("admin/account/", include("rme.tenants.access.urls")),
    path("admin/password_change/", admin.site.admin_view(logins.change_password, cacheable=True)),
    path("admin/acting/begin/<int:user_id>/", acting_pages.begin, name="acting_begin"),
    path("admin/acting/end/", acting_pages.end, name="acting_end"),
    path("admin/console/", include("messaging.console.urls")),
    path(
        "admin/first-steps/<str:organization_id>/",
        admin.site.admin_view(first_steps.show),
        name="first_steps",
    ),
    path("admin/", admin.site.urls),
]
