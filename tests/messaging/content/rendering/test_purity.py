"""Rendering is pure: it imports neither Django nor a driver of a database or of Redis."""

import subprocess
import sys

IMPURE = ("celery", "django", "psycopg", "redis", "rme.settings")
SCRIPT = f"""
import sys
import messaging.content.rendering
print([name for name in sorted(sys.modules) if name.startswith({IMPURE})])
"""


def test_rendering_is_imported_without_django_and_drivers():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
