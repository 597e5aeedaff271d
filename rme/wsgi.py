"""The WSGI application that the web server runs."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")

from django.core.wsgi import get_wsgi_application  # noqa: E402 (settings must be named first)

from rme.core.chunked import ChunkedBodies  # noqa: E402

application = ChunkedBodies(get_wsgi_application())
