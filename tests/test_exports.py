"""Every file that people download, by the real web server: a process of its own makes it."""

import re
import subprocess

import pytest
import requests
from django.conf import settings
from django.urls import reverse
from psutil import Process

from messaging.models import Suppression
from rme.crm.models import Contact, RecordImport
from rme.run import programs
from rme.tenants.models import AuditEntry
from tests import factories
from tests.messaging.console.conftest import url
from tests.service import ROOT, free_port, wait_for
from tests.tenants.admin.scene import fill, page, person
from tests.tenants.oauth.test_real_server import answers, environment

pytestmark = pytest.mark.django_db(transaction=True)


def test_only_downloads_makes_long_responses():
    sources = [
        path for top in ("rme", "messaging", "push", "bot") for path in ROOT.glob(f"{top}/**/*.py")
    ]
    users = {
        str(path.relative_to(ROOT))
        for path in sources
        if re.search(r"\b(StreamingHttpResponse|FileResponse)\(", path.read_text())
    }
    assert len(sources) > 300
    assert users == {"rme/core/http/downloads.py"}


@pytest.fixture
def root(org):
    fill(org)
    factories.contacts(org, 3000)
    run = RecordImport.objects.create(organization=org, kind="Contact", name="x.csv", state="DONE")
    run.parts.create(number=0, first_line=2, problems=[[2, "email", "is wrong"]])
    return person("root", is_superuser=True)


def files(org):
    """Return the addresses of all files with the forms that ask for them."""
    (run,) = RecordImport.objects.all()
    listed = {"organization": org.pk}
    return [
        (url("ledger_export"), {"format": "csv"}),
        (url("ledger_export"), {"format": "ndjson"}),
        (url("audit_export"), {}),
        (reverse("console:deployment_audit_export"), {}),
        (url("export"), {}),
        (url("template_export"), {}),
        (page(Contact, "export"), listed),
        (page(Suppression, "export"), listed),
        (page(Contact, "import_report", run.pk), None),
    ]


def test_web_server_files_equal_files_made_in_a_thread(root, org):
    port = free_port()
    env = {**environment(port), "PORT": str(port), "WEB_WORKERS": "1", "ALLOWED_HOSTS": "*"}
    process = subprocess.Popen(programs.web(env), cwd=ROOT, env=env)
    try:
        wait_for(lambda: answers(port), 60)
        session = requests.Session()
        cookie = root.cookies[settings.SESSION_COOKIE_NAME]
        session.cookies.set(settings.SESSION_COOKIE_NAME, cookie.value)
        session.get(f"http://127.0.0.1:{port}{url('ledger')}", timeout=60)
        token = session.cookies[settings.CSRF_COOKIE_NAME]
        made = {}
        for number, (path, form) in enumerate(files(org)):
            address = f"http://127.0.0.1:{port}{path}"
            fields = {**(form or {}), "csrfmiddlewaretoken": token}
            response = session.request(
                "GET" if form is None else "POST", address, data=fields, timeout=60
            )
            assert response.status_code == 200, path
            assert "no-store" in response.headers["Cache-Control"]
            made[number] = response.headers["Content-Disposition"], response.content
        rows = "".join(f"Ada{n},Lovelace,a{n}@x.example\n" for n in range(20_000))
        for size in (100, len(rows)):
            text = f"first_name,last_name,email\n{rows[:size]}"
            response = session.post(
                f"http://127.0.0.1:{port}{page(Contact, 'new_import')}",
                {"organization": org.pk, "csrfmiddlewaretoken": token},
                files={"file": ("people.csv", text)},
                allow_redirects=False,
                timeout=60,
            )
            assert response.status_code == 302
        # The web process only passes on what another process has made.
        commands = [each.cmdline() for each in Process(process.pid).children(recursive=True)]
        assert any("rme.core.process.errand_process" in each for each in commands)
    finally:
        process.terminate()
        process.wait(60)
    imports = RecordImport.objects.filter(name="people.csv").order_by("rows")
    assert [row.rows for row in imports][-1] == 20_000
    imports.delete()
    exported = AuditEntry.objects.filter(action="EXPORTED").count()
    assert exported == len(files(org)) - 1  # a report is about an import that is recorded
    for number, (path, form) in enumerate(files(org)):
        response = root.get(path) if form is None else root.post(path, form)
        disposition, content = made[number]
        assert response["Content-Disposition"] == disposition
        expected = b"".join(response.streaming_content)
        if "audit" in path:  # has an entry for each export before it
            assert content.splitlines()[-1] == expected.splitlines()[-1]
        else:
            assert content == expected
            assert content
