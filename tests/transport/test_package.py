"""The package can be used without the rest of rme."""

import subprocess
import sys


def test_package_imports_no_django() -> None:
    code = "import sys, rme.transport, rme.transport.smpp; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"django", "celery", "psycopg", "messaging", "push", "bot"}
    modules = {name for name in done.stdout.split() if name.startswith("rme.")}
    assert {name for name in modules if not name.startswith("rme.transport")} == set()
