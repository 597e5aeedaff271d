"""The WSGI application that the web server runs."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from rme.core.db import availability
from rme.core.http.chunked import ChunkedBodies
from rme.core.process import memory

availability.limit(settings.DATABASE_SECONDS)
application = ChunkedBodies(get_wsgi_application())
memory.freeze_startup_objects()
