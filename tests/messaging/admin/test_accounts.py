"""Provider accounts: their last hour in lists, and where the admin leads."""

import pytest

from messaging.delivery.accounts import CircuitState
from messaging.models import Attempt, ProviderAccount
from messaging.reports import account_hour
from tests import factories
from tests.rest import Api, message, work
from tests.tenants.admin.scene import page

pytestmark = pytest.mark.django_db


@pytest.fixture
def account(org):
    return ProviderAccount.objects.create(
        organization=org, name="sim", kind="simulator", channel="EMAIL"
    )


def test_the_list_shows_each_accounts_last_hour(root, org, account):
    other = ProviderAccount.objects.create(
        organization=org, name="idle", kind="simulator", channel="SMS"
    )
    api = Api(org)
    for address in ("ada", "reject", "unknown"):
        api.send(message(factories.contact(org, email=f"{address}@simulator.rme.test")))
    work()
    Attempt.objects.update(latency_ms=7)
    shown = account_hour.read_summaries([account, other])
    assert shown == {
        account.pk: account_hour.AccountSummary(CircuitState.CLOSED, 3, 1, 1, 7),
        other.pk: account_hour.AccountSummary(CircuitState.CLOSED),
    }
    text = root.get(f"/admin/console/{org.pk}/providers/").content.decode()
    assert "3 sent: 1 accepted, 1 failed, p95 7 ms" in text
    assert "Nothing sent" in text
    assert account_hour.read_summaries([]) == {}


@pytest.mark.parametrize("count", [1, 4])
def test_the_list_asks_once_for_all_accounts(root, org, count, django_assert_num_queries):
    rows = [
        ProviderAccount.objects.create(
            organization=org, name=f"a{number}", kind="simulator", channel="EMAIL"
        )
        for number in range(count)
    ]
    with django_assert_num_queries(1):
        assert len(account_hour.read_summaries(rows)) == count


def test_list_redirects_to_the_console(root, account):
    listed = root.get(page(ProviderAccount, "changelist"))
    assert listed["Location"] == "/admin/console/acme/providers/"


def test_draft_cannot_be_activated_by_its_form(root, org):
    row = ProviderAccount.objects.create(
        organization=org, name="new", kind="simulator", channel="SMS", state="DRAFT"
    )
    shown = root.get(page(ProviderAccount, "change", row.pk)).content.decode()
    assert 'name="state"' not in shown


def test_adding_an_account_redirects_to_the_console(root, org):
    add = page(ProviderAccount, "add")
    assert root.get(add)["Location"] == "/admin/console/acme/providers/"
    assert root.get(add, {"organization": "acme"})["Location"] == "/admin/console/acme/providers/"
