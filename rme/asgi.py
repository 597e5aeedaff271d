"""The ASGI application that the web server runs."""

from rme.wsgi import application as wsgi_application  # sets Django up

# isort: split
import sys
from multiprocessing.util import Finalize

from django.conf import settings

from messaging.api.urls import SETS
from rme.core.db import availability
from rme.core.http.serving.gateway import Bounds, Gateway
from rme.core.process import memory
from rme.core.telemetry import process_gauges, tracing
from rme.tenants.audit import request_log

SWITCH_SECONDS = 0.001
"""How long a thread may compute before it hands over the interpreter.

A call needs it about twenty times, so with Python's 5 ms one export would delay each call by 0.1 s.
"""

sys.setswitchinterval(SWITCH_SECONDS)
availability.limit(settings.DATABASE_SECONDS)
application = Gateway(
    wsgi_application,
    settings.WEB_THREADS,
    bounds=Bounds(set_seconds=settings.DATABASE_SECONDS),
    apart=dict.fromkeys(SETS, settings.SENDING_THREADS),
    sets=SETS,
)
request_log.start()
process_gauges.start(process_gauges.WEB)
tracing.start()
# granian's processes are multiprocessing's, which run no handlers of `atexit`.
Finalize(None, tracing.stop, exitpriority=1)
memory.freeze_startup_objects()
