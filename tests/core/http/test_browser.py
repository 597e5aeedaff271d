"""Pages of a session: no cache keeps them."""

import pytest
from django.conf import settings

from tests.routes import every_route
from tests.tenants.admin.scene import person

PAGES = [
    path
    for path in sorted(set(every_route()))
    if path.startswith(("/admin/account/", "/push-demo")) and path != "/push-demo/worker.js"
]


def test_checked_pages_include_known_ones():
    assert {"/admin/account/2fa/", "/admin/account/sessions/", "/push-demo"} <= {*PAGES}
    assert not any(path.startswith(settings.API_PREFIXES) for path in PAGES)


@pytest.mark.parametrize("path", PAGES)
def test_no_cache_keeps_a_page_of_a_session(db, path):
    client = person("root", is_superuser=True)
    client.raise_request_exception = False
    assert "no-store" in client.get(path)["Cache-Control"]
