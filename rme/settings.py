"""All settings that are read from the environment: one block per concern.

`docs/settings.md` lists every variable. Nothing else in the project reads the environment.
What is the same in every deployment is in `rme.fixed_settings`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONCE, NONE, SELF

from rme import __version__
from rme.core.db.periods import Period
from rme.core.environment import (
    archive_settings,
    broker_settings,
    database_settings,
    plain_errors,
    redis_url,
    secret_files,
    tracing_settings,
)
from rme.core.environment.secret_key import derived_key, secret_key
from rme.core.environment.smtp_url import opened_by, parse
from rme.core.environment.values import Values
from rme.core.http.forwarded import is_loopback
from rme.core.logs import logging_config
from rme.core.process import memory
from rme.fixed_settings import *  # noqa: F403 (Django reads all settings from one module)
from rme.fixed_settings import BASE_DIR
from rme.run.places import engine_env

# here, because each process loads this module before all others
memory.collect_less_often()
plain_errors.install()

VAR = Path(os.environ.get("RME_VAR", BASE_DIR / "var"))
ENV = {
    **engine_env(VAR),
    **secret_files.read({name: value for name, value in os.environ.items() if value}),
}


_values = Values(ENV)
_flag, _words = _values.flag, _values.words
_integer, _number, _numbers = _values.integer, _values.number, _values.numbers
_base_url = _values.base_url

# --- the deployment -----------------------------------------------------------------------------
PORT = _integer("PORT", 8000)
BASE_URL = _base_url("BASE_URL", f"http://127.0.0.1:{PORT}")
"""The URL of this deployment: scheme, host and port."""
DEBUG = _flag("DEBUG")
SECRET_KEY = ENV.get("SECRET_KEY") or secret_key(VAR)
SECRET_KEY_FALLBACKS = _words("SECRET_KEY_FALLBACKS")
FIELD_KEYS = _words("FIELD_KEYS") or [derived_key(SECRET_KEY, "fields")]
"""Fernet keys for stored secrets. The first encrypts, all decrypt: put a new one first."""
ALLOWED_HOSTS = _words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
TLS_PROXY_HEADER = ENV.get("TLS_PROXY", "").strip().lower()
TLS_PROXY = _flag("TLS_PROXY") or TLS_PROXY_HEADER == "forwarded"
"""A proxy in front ends TLS and sets `Forwarded` (if that is the value) or X-Forwarded-Proto and
-For: see `rme.core.http.edge`."""
OUTBOUND_OPEN_HOSTS = _words("OUTBOUND_OPEN_HOSTS")
"""Hosts (`mail.internal`, `10.0.0.5:25`) that may be called although they are not public."""
SMTP_URL = ENV.get("SMTP_URL", "")
"""The demo organization's mail server, which may be a host that is not public."""
if SMTP_URL:
    OUTBOUND_OPEN_HOSTS += opened_by(SMTP_URL)

# --- cells --------------------------------------------------------------------------------------
CELL = ""
"""The name of this cell; empty: it is the only one. docs/cells.md describes cells."""
CELLS: Mapping[str, str] = {}
"""The internal URLs of all cells, by name."""
CELL_SECRET = ""
"""What the calls between cells and router are signed with: see `rme.cells.signatures`."""
MOVE_DATABASE_URL = ENV.get("MOVE_DATABASE_URL", "")
"""The database of the cell to which `move_organization` moves."""
if "CELL" in ENV or "CELLS" in ENV:
    from rme.cells import environment as cell_environment

    _cells = cell_environment.read(ENV)
    CELL, CELLS, CELL_SECRET = _cells.own, _cells.urls, _cells.secret
if CELL:
    from rme.cells.plugged_settings import *  # noqa: F403
    from rme.cells.signatures import SESSION_COOKIE

    # One browser has a session in each of several cells, all at the router's address.
    SESSION_COOKIE_NAME = f"{SESSION_COOKIE}{CELL}"
    LINK_QUERY = f"?cell={CELL}"

# --- static files -------------------------------------------------------------------------------
STATIC_ROOT = Path(ENV.get("STATIC_ROOT", VAR / "static"))
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns where there is none
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

# --- PostgreSQL ---------------------------------------------------------------------------------
DATABASES = database_settings.read(ENV)
DATABASE_SECONDS = _number("DATABASE_SECONDS", 4)
"""How long a statement of a call may take, in seconds; after that the call gets 503."""

# --- Redis and Celery ---------------------------------------------------------------------------
REDIS_URL = redis_url.check("REDIS_URL", ENV["REDIS_URL"])
REDIS_TIMEOUT = _number("REDIS_TIMEOUT", 0.5)
BROKER_ADDRESS = ENV.get("CELERY_BROKER_URL") or REDIS_URL
"""The address of the broker as it was given; Celery has forms of its own for some."""
_broker = redis_url.broker_settings(BROKER_ADDRESS, "CELERY_BROKER_URL")
CELERY_BROKER_URL = _broker["url"]
CELERY_BROKER_USE_SSL = _broker.get("use_ssl", False)
CELERY_TASK_DEFAULT_QUEUE_TYPE = broker_settings.queue_type(ENV, CELERY_BROKER_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
    "health_check_interval": 10,
    # A call must not wait for a broker that is away; worker and beat, which need one, connect again
    # by CELERY_BROKER_CONNECTION_MAX_RETRIES.
    "max_retries": 0,
    **_broker.get("transport_options", {}),
}
# --- log-in and tokens --------------------------------------------------------------------------
MFA_TOTP_ISSUER = f"rme {BASE_URL.partition('://')[2]}".replace(":", " ")
# Browsers accept passkeys without TLS on localhost alone.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not BASE_URL.startswith("https://")
OIDC_URL = ENV.get("OIDC_URL", "").rstrip("/")
"""The issuer of single sign-on (OpenID Connect); empty: there is none."""
OIDC_NAME = ENV.get("OIDC_NAME", "single sign-on")
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "sso",
                "name": OIDC_NAME,
                "client_id": ENV.get("OIDC_CLIENT_ID", ""),
                "secret": ENV.get("OIDC_CLIENT_SECRET", ""),
                "settings": {"server_url": OIDC_URL},
            }
        ]
        if OIDC_URL
        else [],
    }
}
SECOND_FACTOR_REQUIRED = _flag("SECOND_FACTOR_REQUIRED")
"""Whether everybody needs a second factor; otherwise each organization decides for its people."""
_host = urlsplit(BASE_URL).hostname or ""
SUPERUSER_FACTOR_REQUIRED = _flag(
    "SUPERUSER_FACTOR_REQUIRED", default=_host != "localhost" and not is_loopback(_host)
)
"""Whether superusers need one; by default, if other machines can reach the console."""
SESSION_IDLE_SECONDS = _integer("SESSION_IDLE_SECONDS", 7200)
SESSION_SECONDS = _integer("SESSION_SECONDS", 86400)
"""How long a session of the console lasts without a request, and at most."""
ACTING_SECONDS = _integer("ACTING_SECONDS", 1800)
"""How long a person may act as another user at most."""
LOGIN_FAILURES = _integer("LOGIN_FAILURES", 5)
"""Wrong passwords in five minutes before more must wait; `limits.logins` has longer spans."""
TOKEN_SECONDS = _integer("TOKEN_SECONDS", 3600)
TOKENS_PER_MINUTE = _integer("TOKENS_PER_MINUTE", 6000)
TOKEN_FAILURES_PER_MINUTE = _integer("TOKEN_FAILURES_PER_MINUTE", 120)
JWT_AUDIENCES = _words("JWT_AUDIENCES")
"""Further audiences that JWT assertions may name, besides this deployment's own addresses."""

# --- mail of the console ------------------------------------------------------------------------
MAIL_ENABLED = bool(opened_by(SMTP_URL))
if MAIL_ENABLED:
    _mail = parse(SMTP_URL)
    EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.username, _mail.password
    EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.security == "STARTTLS", _mail.security == "TLS"
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = ENV.get("MAIL_FROM", f"rme@{urlsplit(BASE_URL).hostname or 'localhost'}")
"""The sender of invitations and of links for a new password."""

# --- bots ---------------------------------------------------------------------------------------
BOT_BASE_PATH = "/".join(["", *filter(None, ENV.get("BOT_BASE_PATH", "/bot").split("/"))])
"""The path under which the bot service answers; `/` for a host of its own."""
BOT_PATHS = (f"{BOT_BASE_PATH}/api.php", f"{BOT_BASE_PATH}/api_create.php")
API_PREFIXES = (
    *("/rme/v1/", "/services/", "/.well-known/", "/hooks/", "/t/"),
    *("/livez", "/readyz", "/metrics", "/cell/"),
    *BOT_PATHS,
)
"""Paths of calls by programs, which skip `BROWSER_MIDDLEWARE`."""
BOT_SECONDS = _number("BOT_SECONDS", 3.5)
"""How long a bot's call may take, in seconds: some bots wait three, and the contract says four."""
BOT_FAILURES_PER_MINUTE = _integer("BOT_FAILURES_PER_MINUTE", 120)
"""Calls with a wrong key from one address before further calls have to wait."""

# --- sending ------------------------------------------------------------------------------------
LEASE_SECONDS = _number("LEASE_SECONDS", 60)
"""The lease of a claim, in seconds; after it the worker is taken for dead."""
RENDER_SECONDS = _number("RENDER_SECONDS", 5)
"""CPU seconds that rendering a delivery may take; then the delivery fails."""
UNKNOWN_SECONDS = _number("UNKNOWN_SECONDS", 60)
"""Seconds for which an unknown outcome waits for a receipt before the category decides."""
UNKNOWN_BACKOFF_SECONDS = _numbers("UNKNOWN_BACKOFF_SECONDS", "0,300,900")
"""The further wait before each resend of an unknown outcome; there is one resend for each."""
PATIENCE_SECONDS = _number("PATIENCE_SECONDS", 0.25)
"""How long, at most, a worker waits for a window; what is missing then is recorded later."""
WEB_THREADS = _integer("WEB_THREADS", 4)
"""The threads of a web process; each works on one request."""
SENDING_THREADS = _integer("SENDING_THREADS", 4)
"""The threads of a web process for single sends that are not stored together with others."""
# Those of them that may wait for a message to leave (`Prefer: wait`).
WAITING_REQUESTS = _integer("WAITING_REQUESTS", 2)
BACKOFF_SECONDS = _number("BACKOFF_SECONDS", 1)
"""The first step of the backoff between tries, in seconds; it doubles up to 15 minutes."""
# A provider account's circuit opens when the share CIRCUIT_FAILURES of its sends in CIRCUIT_SECONDS
# failed, if there were CIRCUIT_SENDS. After CIRCUIT_OPEN_SECONDS a few sends probe the account.
CIRCUIT_FAILURES = _number("CIRCUIT_FAILURES", 0.5)
CIRCUIT_SENDS = _integer("CIRCUIT_SENDS", 20)
CIRCUIT_SECONDS = _number("CIRCUIT_SECONDS", 60)
CIRCUIT_OPEN_SECONDS = _number("CIRCUIT_OPEN_SECONDS", 30)
# How many days the changes of circuits and the log of provider callbacks are kept.
CIRCUIT_HISTORY_DAYS = _integer("CIRCUIT_HISTORY_DAYS", 30)
CALLBACK_LOG_DAYS = _integer("CALLBACK_LOG_DAYS", 7)
# The resolver that is asked for the records of sender domains, as an address with or without a
# port; empty: that of this machine.
DNS_RESOLVER = ENV.get("DNS_RESOLVER", "")

# --- push ---------------------------------------------------------------------------------------
VAPID_KEY_IS_SET = "VAPID_PRIVATE_KEY" in ENV
VAPID_PRIVATE_KEY = ENV.get("VAPID_PRIVATE_KEY") or derived_key(SECRET_KEY, "vapid")
"""The key of Web Push (RFC 8292): 32 bytes, base64url. With another one all browsers' subscriptions
are lost, so set it before SECRET_KEY ever changes."""
WEB_PUSH_HOSTS = _words(
    "WEB_PUSH_HOSTS",
    "fcm.googleapis.com,jmt17.google.com,updates.push.services.mozilla.com,web.push.apple.com,"
    "notify.windows.com",
)
"""The push services that browsers may subscribe at; hosts below them count too."""

# --- keeping ------------------------------------------------------------------------------------
CONTENT_RETENTION_DAYS = _integer("CONTENT_RETENTION_DAYS", 30)
"""How long the content of a message is kept after its end."""
MESSAGE_RETENTION_DAYS = _integer("MESSAGE_RETENTION_DAYS", 400)
"""How long messages with their recipients, attempts and events are kept."""

REQUEST_LOG_DAYS = _integer("REQUEST_LOG_DAYS", 7)
"""How long the metadata of REST requests is kept; 0: nothing is recorded."""
PRIVACY_REQUEST_DAYS = _integer("PRIVACY_REQUEST_DAYS", 30)
"""How long a request for a data export or an erasure may take; then it is overdue."""
PRIVACY_FILE_DAYS = _integer("PRIVACY_FILE_DAYS", 7)
"""How long the file of a data export can be downloaded."""

PARTITION_PERIOD = Period(ENV.get("PARTITION_PERIOD", "month"))
"""`day`, `week` or `month`: the length of the partitions of messages and their rows."""
CONTENT_PARTITION_PERIOD = Period(ENV.get("CONTENT_PARTITION_PERIOD", "week"))
"""The length of the partitions of contents, which are dropped whole: `day` above 30 M a day."""

ARCHIVE = archive_settings.read(ENV)
"""Where old messages are archived; None: nowhere."""
ARCHIVE_AFTER_DAYS = archive_settings.read_days(ENV, MESSAGE_RETENTION_DAYS)
"""How long after its last change an ended message is moved to the archive."""
ARCHIVE_RETENTION_DAYS = _integer("ARCHIVE_RETENTION_DAYS", 0)
"""How long messages are kept in the archive; 0: without limit."""
ARCHIVE_SECONDS = _number("ARCHIVE_SECONDS", 3)
"""How long a call may wait for the archive's store; after that it gets 503."""

# --- browsers -----------------------------------------------------------------------------------
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BASE_URL.startswith("https://")
CSRF_TRUSTED_ORIGINS = [BASE_URL] if "://" in BASE_URL else []
_sign_on = ["://".join(urlsplit(OIDC_URL)[:2])] if OIDC_URL else []
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        # Chromium applies it to the redirect that follows a form, too: to single sign-on.
        "form-action": [SELF, *_sign_on],
        "frame-ancestors": [SELF],
    }
}

# --- logs ---------------------------------------------------------------------------------------
LOGGING_CONFIG = None
LOGGING = logging_config(level=ENV.get("LOG_LEVEL", "INFO"), json=_flag("LOG_JSON"))
METRICS_DIR = Path(ENV.get("METRICS_DIR", VAR / "metrics"))
"""Where the processes of a machine keep their metrics; whoever is scraped shows all of them."""
METRICS_PORT = _integer("METRICS_PORT", 0)
"""Where workers answer /metrics, on a machine without a web process; 0: nowhere."""
METRICS_TOKEN = ENV.get("METRICS_TOKEN", "")
"""The bearer token by which other machines may read /metrics; empty: none may."""
TRACING = tracing_settings.check(is_on=_flag("TRACING"))
OTEL_EXPORTER_OTLP_HEADERS = ENV.get("OTEL_EXPORTER_OTLP_HEADERS", "")
"""OpenTelemetry's own variable, which holds the key of a collector: so it may be a file."""
"""Whether traces are made; OpenTelemetry's own variables say where they go."""

# --- API description ----------------------------------------------------------------------------
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "rme",
    "DESCRIPTION": "Send email, SMS and push, and see what became of each message. "
    "A body has at most 5 MiB, 100,000 values and 64 levels. "
    "No text may hold U+0000. Enumerated values are read in any case and answered in capitals.",
    "VERSION": __version__,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "persistAuthorization": False},
    "SCHEMA_PATH_PREFIX": "/rme/v1/",
    "POSTPROCESSING_HOOKS": [
        "messaging.api.messages.sending.add_bulk_items",
        "messaging.api.openapi.add_headers",
        "messaging.api.openapi.require_bodies",
        "messaging.api.openapi.leave_out_defaults",
    ],
    "SERVERS": [{"url": BASE_URL}],
}
