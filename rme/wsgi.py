"""The WSGI application that the web server runs."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from rme.core import database, garbage
from rme.core.chunked import ChunkedBodies

database.limit(settings.DATABASE_SECONDS)
application = ChunkedBodies(get_wsgi_application())
garbage.spare()
