"""A real OpenID Connect provider in a process of its own: Django with django-oauth-toolkit.

`python -m tests.fakes.oidc_provider PORT REDIRECT_URI EMAIL VERIFIED` serves it with one person,
who is logged in already, and one client that needs no consent: `console`, `console-secret`.
VERIFIED is the claim `email_verified` as JSON; empty: there is none.
"""

import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings

CLIENT, SECRET = "console", "console-secret"
SITE = "tests.fakes.oidc_provider_site"
APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "oauth2_provider",
]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def configure(port):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=SITE,
        SECRET_KEY="provider",
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=APPS,
        # Their tables are made at once, as the models are now: migrations take most of a start.
        MIGRATION_MODULES={name.rpartition(".")[2]: None for name in APPS},
        MIDDLEWARE=[f"{SITE}.LoggedIn"],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": key.decode(),
            "OIDC_ISS_ENDPOINT": f"http://127.0.0.1:{port}",
            "OAUTH2_VALIDATOR_CLASS": f"{SITE}.Validator",
            "SCOPES": {"openid": "OpenID", "profile": "Name", "email": "Email"},
            "PKCE_REQUIRED": True,
        },
    )
    django.setup()


def fill(redirect_uri, email):
    # Django's models can be imported once it is configured.
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from oauth2_provider.models import Application

    call_command("migrate", verbosity=0, run_syncdb=True)
    user = get_user_model().objects.create_user("sam", email)
    Application.objects.create(
        user=user,
        client_id=CLIENT,
        client_secret=SECRET,
        client_type="confidential",
        authorization_grant_type="authorization-code",
        algorithm="RS256",
        redirect_uris=redirect_uri,
        skip_authorization=True,
    )


if __name__ == "__main__":
    from django.core.wsgi import get_wsgi_application

    configure(int(sys.argv[1]))
    fill(*sys.argv[2:4])
    handler = get_wsgi_application()
    make_server("127.0.0.1", int(sys.argv[1]), handler, handler_class=Quiet).serve_forever()
