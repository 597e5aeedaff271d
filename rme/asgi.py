"""The ASGI application that the web server runs."""

from rme.wsgi import application as wsgi_application  # sets Django up

# isort: split
from django.conf import settings

from rme.core.db import availability
from rme.core.http.gateway import Gateway, Route
from rme.core.process import memory

availability.limit(settings.DATABASE_SECONDS)
# Most threads of single sends wait until the set before theirs is stored.
application = Gateway(
    wsgi_application,
    settings.WEB_THREADS,
    apart={Route("POST", "/rme/v1/messages"): settings.SENDING_THREADS},
)
memory.freeze_startup_objects()
