"""Django as a WSGI application; the web server runs `rme.asgi`, which bounds and isolates it."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")

from django.core.wsgi import get_wsgi_application

from rme.core.http.chunked import ChunkedBodies

application = ChunkedBodies(get_wsgi_application())
