"""The settings of the tests' own process: cells are loaded, so that a test can be a cell.

Programs that tests start have those of the service.
"""

from rme import settings as service
from rme.cells import plugged_settings as cells

globals().update({name: value for name, value in vars(service).items() if name.isupper()})
globals().update({name: value for name, value in vars(cells).items() if name.isupper()})
