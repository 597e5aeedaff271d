"""Bring up a real Odoo 19 in var/odoo and run on_real_odoo.py against it (`make test-odoo`).

The program is Debian's package odoo-19, fetched by apt and unpacked, never installed; the Python
packages that it needs go into an environment of their own, and its database into an embedded
PostgreSQL. Where a part cannot be had, that is said, and nothing fails.
"""

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import dj_database_url

ROOT = Path(__file__).resolve().parents[2]
VAR = ROOT / "var" / "odoo"
PACKAGE = VAR / "root" / "usr" / "lib" / "python3" / "dist-packages"
PYTHON = VAR / "venv" / "bin" / "python"
READY = VAR / "database-ready"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
PORT = int(os.environ.get("ODOO_PORT", "8869"))
MODULES = "base,rpc,phone_validation,project,event,website_event_track,website_event_exhibitor"
NEEDS = """
asn1crypto babel cbor2 chardet cryptography docutils freezegun geoip2 gevent greenlet idna jinja2
libsass lxml lxml-html-clean markupsafe num2words ofxparse openpyxl passlib phonenumbers pillow
polib psutil psycopg2-binary pyopenssl pypdf python-dateutil python-magic python-stdnum pytz qrcode
reportlab requests rjsmin setuptools<81 urllib3 vobject werkzeug<3.1 xlrd xlsxwriter xlwt zeep
"""
"""What the package depends on in Debian, by its names on PyPI."""
MAKE_KEY = """
user = env.ref("base.user_admin")
key = env(user=user)["res.users.apikeys"]._generate(None, "rme", None)
env.cr.commit()
print("key:" + key)
"""


class Missing(Exception):
    """A part that cannot be had here."""


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command; its output is read. Raises Missing, with the end of what it said."""
    try:
        return subprocess.run(
            [str(part) for part in command], check=True, text=True, capture_output=True, **options
        )  # type: ignore[call-overload,no-any-return]
    except (OSError, subprocess.CalledProcessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines() or ["?"]
        raise Missing(f"{Path(command[0]).name}: {said[-1]}") from error


def fetch() -> None:
    """Unpack Debian's package, by sources and a state of our own: this machine's stay as they
    are. Debian has it in sid.
    """
    if PACKAGE.exists():
        return
    for program in ("apt-get", "dpkg"):
        if not shutil.which(program):
            raise Missing(f"there is no {program} here")
    if not KEYRING.exists():
        raise Missing("there are no keys of Debian's archive here")
    state = VAR / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    sources = state / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {_mirror()} sid main\n")
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": state / "lists",
        "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", *(part for k, v in settings.items() for part in ("-o", f"{k}={v}"))]
    run(*apt, "update")
    run(*apt, "download", "odoo-19", cwd=state)
    (package,) = state.glob("odoo-19_*.deb")
    run("dpkg", "-x", package, VAR / "root.new")
    (VAR / "root.new").rename(VAR / "root")
    shutil.rmtree(state)


def _mirror() -> str:
    """Return the mirror of Debian that this machine has its packages from."""
    known = run("apt-get", "indextargets", "--format", "$(REPO_URI)").stdout.split()
    found = next((address for address in known if address.rstrip("/").endswith("/debian")), None)
    if found is None:
        raise Missing("this machine has its packages from no mirror of Debian")
    return found


def install() -> None:
    """Make the environment."""
    if (VAR / "venv" / ".complete").exists():
        return
    run(sys.executable, "-m", "venv", VAR / "venv")
    run(PYTHON, "-m", "pip", "install", "-q", "--prefer-binary", *NEEDS.split())
    (VAR / "venv" / ".complete").touch()


def odoo(*arguments: str) -> list[str]:
    """Return the command line of the program."""
    database = dj_database_url.parse(os.environ["DATABASE_URL"])
    return [
        *(str(PYTHON), "-m", "odoo", *arguments, "-d", "odoo"),
        *("--db_host", str(database["HOST"]), "--db_user", str(database["USER"])),
        *("--data-dir", str(VAR / "data"), "--addons-path", str(PACKAGE / "odoo" / "addons")),
        *("--log-level", "error", "--without-demo", "--max-cron-threads", "0"),
    ]


def inside() -> int:
    """Beside the engines: make the database, serve, test; return pytest's exit code."""
    env = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    if not READY.exists():
        run(*odoo("--stop-after-init", "--init", MODULES), env=env)
        READY.touch()
    said = run(*odoo("shell"), "--no-http", env=env, input=MAKE_KEY).stdout
    key = next(line[4:] for line in said.splitlines() if line.startswith("key:"))
    address = ("--http-interface", "127.0.0.1", "--http-port", str(PORT))
    with (VAR / "server.log").open("w") as log:
        server = subprocess.Popen([*odoo(), *address], env=env, stdout=log, stderr=log)
    try:
        await_answer(server)
        where = {"ODOO_URL": f"http://127.0.0.1:{PORT}", "ODOO_DATABASE": "odoo", "ODOO_KEY": key}
        tests = [sys.executable, "-m", "pytest", "tests/crm/on_real_odoo.py", *sys.argv[2:]]
        return subprocess.run(tests, env={**os.environ, **where}, check=False).returncode
    finally:
        server.terminate()
        server.wait(30)


def await_answer(server: "subprocess.Popen[bytes]") -> None:
    """Wait until the server answers, two minutes at most. Raises Missing."""
    for _ in range(240):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/web/version", timeout=5)
            return
        except urllib.error.HTTPError:
            return  # it answers
        except OSError:
            time.sleep(0.5)
    raise Missing(f"the server did not start: see {VAR.relative_to(ROOT)}/server.log")


def main() -> int:
    try:
        if sys.argv[1:2] == ["inside"]:
            return inside()
        VAR.mkdir(parents=True, exist_ok=True)
        fetch()
        install()
    except Missing as error:
        print(f"skipped: {error}")
        return 0
    engines = [sys.executable, "-m", "rme.run", "--var", str(VAR / "engines"), "exec", "--"]
    command = [*engines, sys.executable, "-m", "tests.crm.real_odoo", "inside", *sys.argv[1:]]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
