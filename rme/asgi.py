"""The ASGI application that the web server runs."""

from rme.wsgi import application as wsgi_application  # sets Django up

# isort: split
from django.conf import settings

from rme.core.http.gateway import Gateway

application = Gateway(wsgi_application, settings.WEB_THREADS)
