"""The service's own settings, with the reference's paths and Django's usual middleware."""

from rme.settings import *  # noqa: F403

ROOT_URLCONF = "bench.reference.urls"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",  # its apps do not start without
]
MIDDLEWARE.insert(2, "django.contrib.sessions.middleware.SessionMiddleware")
ALLOWED_HOSTS = ["*"]
