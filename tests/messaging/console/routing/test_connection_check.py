"""The button Check connection: what it finds is stored, shown, and forgotten with the settings."""

import orjson
import pytest

from messaging.models import ProviderAccount
from messaging.reports import first_steps
from rme.core.cache import TtlCache
from rme.core.process.errands import HOST_ERRANDS
from rme.tenants.models import Organization
from tests import audited, factories
from tests.fakes.smtp import SmtpServer
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import PASSWORD, person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]


def account(org, port, **fields):
    settings = {"host": "127.0.0.1", "port": port, "security": "NONE", "timeout": 5}
    given = {"name": "mail", "kind": "smtp", "channel": "EMAIL", **fields}
    text = orjson.dumps(settings).decode() if given["kind"] == "smtp" else "{}"
    return ProviderAccount.objects.create(organization=org, **{"credentials": text, **given})


def check(client, row):
    """Press the button; return the page that it leads to."""
    shown = client.post(url("provider", row.pk), {"do": "check"}, follow=True)
    assert shown.redirect_chain == [(url("provider", row.pk), 302)]
    row.refresh_from_db()
    return shown.content.decode()


def checklist(org):
    TtlCache.clear_all()
    Organization.objects.filter(pk=org.pk).update(simulator=False)
    (progress,) = first_steps.read([org.pk])
    return progress.provider, progress.provider_checked


def test_check_of_a_working_account_is_stored_and_shown(root, org):
    with SmtpServer() as server:
        row = account(org, server.port)
        assert checklist(org) == (True, False)
        shown = check(root, row)
    assert row.checked_at is not None
    assert row.check_problem == ""
    assert "UTC: works." in shown
    ((who, action, text),) = audited.summaries()
    assert (who, action, text.partition(":")[0]) == ("root", "TESTED", "connection")
    assert (checklist(org), server.mails) == ((True, True), [])
    row.state = "PAUSED"
    row.save()
    assert checklist(org) == (False, False)


def test_rejected_account_shows_the_reason_without_addresses(root, org):
    with SmtpServer({"NOOP": "550 5.7.1 ops@mail.example is blocked"}) as server:
        row = account(org, server.port)
        shown = check(root, row)
    assert row.check_problem == "550 5.7.1 … is blocked"
    assert "UTC: failed. 550 5.7.1 … is blocked" in shown
    assert checklist(org) == (True, False)


def test_other_settings_have_not_been_checked(root, org):
    with SmtpServer() as server:
        row = account(org, server.port)
        check(root, row)
        form = {
            "name": "renamed", "match": "", "setting_smtp_host": "127.0.0.1",
            "setting_smtp_port": server.port, "setting_smtp_security": "NONE",
            "setting_smtp_timeout": "5.0",
        }  # fmt: skip
        change = url("provider_settings", row.pk)
        assert root.post(change, form).status_code == 302
        row.refresh_from_db()
        assert (row.name, row.checked_at is None) == ("renamed", False)
        other = {**form, "setting_smtp_helo": "me.example"}
        assert root.post(change, other).status_code == 302
    row.refresh_from_db()
    assert (row.checked_at, row.check_problem) == (None, "")
    assert (
        "Not checked since the settings were stored."
        in root.get(url("provider", row.pk)).content.decode()
    )


def test_a_test_send_is_a_check_too(root, org):
    with SmtpServer() as server:
        row = account(org, server.port)
        root.post(url("provider", row.pk), {"do": "test", "to": "a@b.example"})
        row.refresh_from_db()
        assert (len(server.mails), row.check_problem) == (1, "")
        assert row.checked_at is not None
        ProviderAccount.objects.update(checked_at=None)
    with SmtpServer({"RCPT": "550 5.1.1 nobody here"}) as server:
        account(org, server.port, name="other")
        row = ProviderAccount.objects.get(name="other")
        root.post(url("provider", row.pk), {"do": "test", "to": "a@b.example"})
    row.refresh_from_db()
    assert row.checked_at is None  # the recipient's fault says nothing of the account


def test_account_that_cannot_be_checked_says_so(root, org):
    row = account(
        org,
        0,
        kind="kannel",
        channel="SMS",
        credentials='{"base_url": "http://x.example", "username": "u", "password": "p"}',
    )
    assert "The connection can&#x27;t be checked without sending. Send a test." in check(root, row)
    assert row.checked_at is None
    broken = account(org, 0, name="broken", credentials="{}")
    assert "UTC: failed. The account&#x27;s settings are broken." in check(root, broken)


def test_check_button_needs_permission_to_change_the_account(org):
    row = account(org, 1, credentials=f'{{"host": "mail.example", "password": "{PASSWORD}"}}')
    its_page = url("provider", row.pk)
    for role, *statuses in (("OPERATOR", 200, 403), ("VIEWER", 200, 403), ("SUPPORT", 404, 404)):
        client = person(role, org, role)
        shown = client.get(its_page)
        posted = client.post(its_page, {"do": "check"})
        assert (role, [shown.status_code, posted.status_code]) == (role, statuses)
        assert "Check connection" not in shown.content.decode()
    stranger = person("s", factories.organization("other"), "OWNER")
    assert stranger.post(its_page, {"do": "check"}).status_code == 404
    assert stranger.post(url("provider", row.pk, org="other"), {"do": "check"}).status_code == 404
    owner = person("o", org, "OWNER")
    shown = owner.get(its_page).content.decode()
    assert ("Check connection" in shown, PASSWORD in shown) == (True, False)
    row.refresh_from_db()
    assert row.checked_at is None


def test_the_checklist_says_whether_the_provider_was_checked(root, org):
    Organization.objects.filter(pk=org.pk).update(simulator=False)

    def step():
        steps = root.get(f"/admin/first-steps/{org.pk}/").context["checklist"].steps
        (found,) = [each for each in steps if each.text == "Provider"]
        return found.done, found.help

    assert step() == (
        False,
        "Add an account of the service that delivers your email, SMS or push.",
    )
    with SmtpServer() as server:
        row = account(org, server.port)
        assert step() == (
            True,
            "An account is active. Open it and check its connection.",
        )
        check(root, row)
    assert step() == (True, "An account is active, and its connection was checked.")


def test_checks_of_a_slow_host_hold_one_thread_and_are_bounded_over_time(root, org):
    with SmtpServer() as server:
        row = account(org, server.port)
        HOST_ERRANDS.budget.charge(org.pk, 100.0)
        try:
            shown = check(root, row)
            assert "Not done. Your organization&#x27;s checks took too long lately." in shown
            assert (row.checked_at, server.commands) == (None, [])
        finally:
            HOST_ERRANDS.budget.forget()
        assert "UTC: works." in check(root, row)
