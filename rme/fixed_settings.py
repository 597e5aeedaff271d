"""The settings that are the same in every deployment; `rme.settings` reads the others."""

from pathlib import Path
from typing import Any

from rme.sidebar import navigation

BASE_DIR = Path(__file__).resolve().parent.parent

# --- applications -------------------------------------------------------------------------------
INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "oauth2_provider",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    # Our apps come last: their admin pages replace the toolkit's.
    "rme",
    "rme.tenants",
    "rme.crm",
    "bot",
    "push",
    "messaging",
]
MIDDLEWARE = [
    "rme.core.http.api.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "rme.core.http.browser.BrowserMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
BROWSER_MIDDLEWARE = [
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "rme.tenants.access.sessions.SessionMiddleware",
    "rme.tenants.access.acting_pages.ActingMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
"""Middleware of pages in a browser, which API calls skip: see `rme.core.http.browser`."""
SESSION_ENGINE = "rme.tenants.access.session_store"
# The admin's checks look for its middleware only in MIDDLEWARE.
SILENCED_SYSTEM_CHECKS = ["admin.E408", "admin.E409", "admin.E410"]
ROOT_URLCONF = "rme.urls"
WSGI_APPLICATION = "rme.wsgi.application"
APPEND_SLASH = True
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "rme.tenants.access.pages.frame",
            ]
        },
    }
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
# Files are dropped unread, except for views that take them (`rme.core.http.edge`).
FILE_UPLOAD_HANDLERS: list[str] = []

# --- language and time --------------------------------------------------------------------------
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
LOCALE_PATHS = [BASE_DIR / "locale"]
"""Our words for those of django-allauth, and no language but English."""
FORMAT_MODULE_PATH = "rme.formats"

# --- REST ---------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rme.tenants.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["rme.tenants.call_limits.CallThrottle"],
    "DEFAULT_PARSER_CLASSES": ["rme.core.http.parsing.JsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["rme.core.http.parsing.JsonRenderer"],
    "EXCEPTION_HANDLER": "rme.core.http.api.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": None,
}

# --- the admin's theme --------------------------------------------------------------------------
STATIC_URL = "/static/"
UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "rme",
    "SITE_HEADER": "rme",
    "SITE_SYMBOL": "send",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": f"{STATIC_URL}push/icon.svg"}
    ],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "messaging.admin.dashboard.show",
    "SIDEBAR": {"show_search": False, "navigation": navigation},
    "STYLES": [f"{STATIC_URL}console/console.css"],
    "SCRIPTS": [f"{STATIC_URL}console/console.js"],
}
