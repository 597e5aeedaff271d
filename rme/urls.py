"""All paths of the deployment."""

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from messaging.admin import first_steps
from messaging.console.studio import template_files, translations
from messaging.feedback import views
from messaging.pages import push_demo
from rme import metrics, probe_views
from rme.components import style_guide
from rme.sidebar import search_pages
from rme.tenants.access import acting
from rme.tenants.access import pages as access_pages
from rme.tenants.access.limits import logins
from rme.tenants.admin import role_page
from rme.tenants.imports.pages import FilePages

handler403 = "rme.refused_pages.forbidden"
handler404 = "rme.refused_pages.not_found"
handler500 = "rme.core.http.api.failed"
_BOT_PATH = f"{settings.BOT_BASE_PATH}/".lstrip("/")
_PUSH_DEMO_CALLS = ("devices", "send", "replace")
_OAUTH_ROUTES = (
    *(f"services/oauth2/{name}" for name in ("token", "revoke", "introspect")),
    ".well-known/oauth-authorization-server",
)
error_renderers = {
    "metrics": "rme.metrics.render_error",
    "hooks/<str:public_id>": "messaging.feedback.views.render_error",
    "t/o/<str:token>": "messaging.pages.tracking_views.render_error",
    "t/c/<str:token>": "messaging.pages.tracking_views.render_error",
    **dict.fromkeys(
        (f"push-demo/{name}" for name in _PUSH_DEMO_CALLS), "messaging.pages.push_demo.render_error"
    ),
    **dict.fromkeys(_OAUTH_ROUTES, "rme.tenants.oauth.views.render_error"),
    **dict.fromkeys(
        (f"{_BOT_PATH}{name}" for name in ("api.php", "api_create.php")), "bot.views.render_error"
    ),
}
"""What builds the errors of routes that have a shape of their own (`rme.core.http.api.refuse`)."""
uploads = dict(
    [
        ("console:template_import", template_files.UPLOAD),
        ("console:template_translation", translations.UPLOAD),
        *(page.upload() for page in admin.site._registry.values() if isinstance(page, FilePages)),
    ]
)
"""The routes that take files, by name (`rme.core.http.edge.bound_body`)."""

urlpatterns = [
    # first, because Django tries one after the other
    path("rme/v1/", include("messaging.api.urls")),
    path("", RedirectView.as_view(url="/admin/")),
    path("livez", probe_views.livez),
    path("readyz", probe_views.readyz),
    path("metrics", metrics.show),
    path(_BOT_PATH, include("bot.urls")),
    path("hooks/<str:public_id>", views.receive),
    path("p/", include("messaging.pages.urls")),
    path("t/", include("messaging.pages.tracking_urls")),
    path("push-demo", push_demo.show),
    path("push-demo/worker.js", push_demo.worker),
    path("push-demo/devices", push_demo.register),
    path("push-demo/send", push_demo.send),
    path("push-demo/replace", push_demo.replace),
    path("", include("rme.tenants.oauth.urls")),
    path("admin/login/", access_pages.LogInPage.as_view()),
    path("admin/account/roles/", admin.site.admin_view(role_page.show), name="roles"),
    *([path("", include("rme.cells.urls"))] if apps.is_installed("rme.cells") else []),
    path("admin/account/", include("rme.tenants.access.urls")),
    path("admin/password_change/", admin.site.admin_view(logins.change_password, cacheable=True)),
    path("admin/acting/begin/<int:user_id>/", acting.begin_page, name="acting_begin"),
    path("admin/acting/end/", acting.end_page, name="acting_end"),
    path("admin/console/search/", search_pages.show, name="search"),
    path("admin/console/search/results/", search_pages.suggest, name="search_results"),
    path("admin/console/", include("messaging.console.urls")),
    path(
        "admin/first-steps/<str:organization_id>/",
        admin.site.admin_view(first_steps.show),
        name="first_steps",
    ),
    *(
        [path("admin/style-guide/", admin.site.admin_view(style_guide.show))]
        if settings.DEBUG
        else []
    ),
    path("admin/", admin.site.urls),
]
