"""The WSGI application of the references."""

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "bench.reference.settings"

from django.core.wsgi import get_wsgi_application

application = get_wsgi_application()
