"""The site of all admin pages."""

import pytest
from unfold.sites import UnfoldAdminSite

from rme.tenants.models import Membership
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def looked_up(monkeypatch):
    """Return the applications of which models were looked up; None: of all."""
    found = []
    real = UnfoldAdminSite.get_app_list

    def get_app_list(site, request, app_label=None):
        found.append(app_label)
        return real(site, request, app_label)

    monkeypatch.setattr(UnfoldAdminSite, "get_app_list", get_app_list)
    return found


def test_models_are_looked_up_where_they_are_listed(org, looked_up):
    owner = person("owner", org, Membership.Role.OWNER)
    assert owner.get("/admin/messaging/category/").status_code == 200
    assert looked_up == []
    page = owner.get("/admin/messaging/")
    assert looked_up == ["messaging"]
    assert 'href="/admin/messaging/category/"' in page.content.decode()


def test_app_without_accessible_pages_is_404(org, looked_up):
    support = person("support", org, Membership.Role.SUPPORT)
    assert support.get("/admin/bot/").status_code == 404
    assert looked_up == ["bot"]
