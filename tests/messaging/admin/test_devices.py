"""Devices in the admin: a token is entered once."""

import pytest

from push.models import Device, token_digest
from tests.tenants.admin.scene import page

pytestmark = pytest.mark.django_db


@pytest.mark.promise("devices-19")
def test_a_token_is_registered_once_and_never_shown(root, org):
    form = {
        "organization": org.pk, "contact_id": "ada", "platform": "ANDROID", "token": "secret-token",
        "environment": "PRODUCTION", "active": "on",
    }  # fmt: skip
    assert root.post(page(Device, "add"), form).status_code == 302
    row = Device.objects.get()
    assert row.token_digest == token_digest("secret-token")
    again = root.post(page(Device, "add"), form)
    assert set(again.context["adminform"].form.errors) == {"token"}
    for name in ("change", "history", "delete"):
        shown = root.get(page(Device, name, row.pk)).content.decode()
        assert "secret-token" not in shown
        assert row.token_digest not in shown
