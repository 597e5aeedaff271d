"""The settings that are the same in every deployment; `rme.settings` reads the others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

BASE_DIR = Path(__file__).resolve().parent.parent

# --- applications -------------------------------------------------------------------------------
INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "rme.apps.AdminConfig",
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
    "rme.tenants.access.acting.ActingMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
"""Middleware of pages in a browser, which API calls skip: see `rme.core.http.browser`."""
SESSION_ENGINE = "rme.tenants.access.sessions"
# The admin's checks look for its middleware only in MIDDLEWARE.
SILENCED_SYSTEM_CHECKS = ["admin.E408", "admin.E409", "admin.E410"]
ROOT_URLCONF = "rme.urls"
WSGI_APPLICATION = "rme.wsgi.application"
APPEND_SLASH = True
TEMPLATES: list[dict[str, Any]] = [
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
                "rme.sidebar.frame",
            ],
            "builtins": ["rme.components.tags", "rme.components.list_tags"],
        },
    }
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
# Files are dropped unread, except for views that take them (`rme.core.http.edge`).
FILE_UPLOAD_HANDLERS: list[str] = []

PLACES = "rme.core.placement.OnlyPlace"
"""Who answers whether an organization is served here: see `rme.core.placement`."""
ARCHIVE_CLASS = "messaging.archive.reading.ParquetArchive"
"""Who reads archived messages, if there is an archive: see `messaging.store.archived`."""
AFTER_MIGRATIONS: list[str] = []
"""Functions that `migrate` calls at its end; they may raise ImproperlyConfigured."""
LINK_QUERY = ""
"""The query of links in emails of the console."""
ANY_HOST_PATHS: list[str] = []
"""Paths that may be requested by any host name or address, besides probes and metrics."""

# --- language and time --------------------------------------------------------------------------
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
LANGUAGES = [("en", "English")]
"""Those that locale/ has a catalogue for; no page asks the browser for another one."""
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "rme.formats"

# --- Celery -------------------------------------------------------------------------------------
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# By default Celery kills a child that takes 4 s to start, which it may on a busy machine.
CELERY_WORKER_PROC_ALIVE_TIMEOUT = 60.0
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# The longest time for which a caller waits for a broker that does not answer.
CELERY_BROKER_CONNECTION_TIMEOUT = 1.0
# Tasks are hints, so enqueuing is retried once, at once. Without the retry a connection that was
# lost would never be opened again (beat has one for all tasks).
CELERY_TASK_PUBLISH_RETRY = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
}
# Celery's Django fixup would close connection and pool after every task. Each task checks before it
# starts whether the connection is still open (`rme.core.process.worker`).
CELERY_DB_REUSE_MAX = 1_000_000

# --- log-in and tokens --------------------------------------------------------------------------
AUTH_USER_MODEL = "tenants.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
AUTHENTICATION_BACKENDS = [
    "rme.tenants.logins.LimitedBackend",
    # Only for the sessions that it began: LimitedBackend answers all log-ins.
    "django.contrib.auth.backends.ModelBackend",
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
ACCOUNT_ADAPTER = "rme.tenants.access.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
LOGOUT_REDIRECT_URL = ACCOUNT_LOGOUT_REDIRECT_URL = "admin:login"
ACCOUNT_RATE_LIMITS = False  # `rme.tenants.access.limits.logins` limits, for all processes together
USERSESSIONS_ADAPTER = "rme.tenants.access.audited.SessionsAdapter"
MFA_ADAPTER = "rme.tenants.access.adapters.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_FORMS = {
    "activate_totp": "rme.tenants.access.forms.FirstCode",
    "authenticate": "rme.tenants.access.forms.LimitedCode",
    "reauthenticate": "rme.tenants.access.forms.LimitedCodeAgain",
    "add_webauthn": "rme.tenants.access.forms.NewPasskey",
    "authenticate_webauthn": "rme.tenants.access.forms.PasskeyAsFactor",
    "login_webauthn": "rme.tenants.access.forms.PasskeyLogin",
    "reauthenticate_webauthn": "rme.tenants.access.forms.PasskeyAgain",
}
# There is no sign-up, so an address cannot be blocked by another person.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
SOCIALACCOUNT_ADAPTER = "rme.tenants.access.adapters.SocialAdapter"
SOCIALACCOUNT_STORE_TOKENS = False
OAUTH2_PROVIDER_APPLICATION_MODEL = "tenants.Application"
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    "rme.tenants.oauth.client_authentication.SecretHasher",
]
OAUTH2_SCOPES = {"api": "The REST API"}
OAUTH2_PROVIDER = {
    "CLIENT_SECRET_HASHER": "random_secret_sha256",
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "SCOPES": OAUTH2_SCOPES,
    "DEFAULT_SCOPES": ["api"],
}

# --- browsers -----------------------------------------------------------------------------------
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "rme.refused_pages.stale"
X_FRAME_OPTIONS = "SAMEORIGIN"

# --- REST ---------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rme.tenants.oauth.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rme.tenants.oauth.routes.RoutePermission"],
    "DEFAULT_THROTTLE_CLASSES": ["rme.tenants.oauth.call_limits.CallThrottle"],
    "DEFAULT_PARSER_CLASSES": ["rme.core.http.parsing.JsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["rme.core.http.parsing.JsonRenderer"],
    "EXCEPTION_HANDLER": "rme.core.http.api.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": None,
}

# --- the admin's theme --------------------------------------------------------------------------
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "rme" / "theme"]
"""Files that replace the theme's own: a build of Alpine.js that doesn't need 'unsafe-eval'."""


def _static(path: str) -> Callable[[object], str]:
    """Return what names a file to the theme, which tries to import a plain address on each page."""
    return lambda request: f"{STATIC_URL}{path}"


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "rme",
    "SITE_URL": None,  # there is no other site
    "SITE_HEADER": "rme",
    "SITE_SYMBOL": "send",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _static("push/icon.svg")}],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "messaging.admin.dashboard.show",
    "STYLES": [
        _static(f"console/{name}.css")
        for name in ("tokens", "shell", "search", "components", "console")
    ],
    "SCRIPTS": [
        _static(f"console/{name}.js") for name in ("appearance", "console", "forms", "search")
    ],
    "COLORS": {
        "primary": {
            "50": "#eff4ff",
            "100": "#dbeafe",
            "200": "#bfdbfe",
            "300": "#93c5fd",
            "400": "#60a5fa",
            "500": "#86b1ff",
            "600": "#1d4ed8",
            "700": "#1d4ed8",
            "800": "#1e40af",
            "900": "#1e3a8a",
            "950": "#172554",
        }
    },
}
