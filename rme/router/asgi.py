"""The ASGI application that the router's web server runs."""

import os

from rme.router import environment
from rme.router.application import CellRouter

application = CellRouter(environment.read(os.environ))
