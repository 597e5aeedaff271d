"""`python -m rme.router`: the one address in front of several cells (`rme.cells.router`)."""

import sys

from rme.cells.router.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
