"""The WSGI application of the bot's reference: the service's own settings and middleware."""

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "rme.settings"

from django.conf import settings
from django.core.wsgi import get_wsgi_application

settings.ROOT_URLCONF = "bench.reference.bot"
application = get_wsgi_application()
