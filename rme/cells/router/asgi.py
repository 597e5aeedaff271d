"""The ASGI application that the router's web server runs."""

import os

from rme.cells.router import environment
from rme.cells.router.application import CellRouter

application = CellRouter(environment.read(os.environ))
