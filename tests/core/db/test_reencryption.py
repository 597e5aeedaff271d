"""All secrets at rest get the first key; what no key reads is named, never shown."""

import io

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import ProviderAccount, WebhookEndpoint
from rme.core.db import reencryption
from rme.core.db.encrypted_fields import UnreadableSecret
from rme.crm.models import Platform
from tests import factories

pytestmark = pytest.mark.django_db
OLD, NEW, LOST = (Fernet.generate_key().decode() for _ in range(3))
FIELDS = {
    "messaging.ProviderAccount.credentials",
    "messaging.WebhookEndpoint.secret",
    "messaging.WebhookEndpoint.former_secret",
    "crm.Platform.credentials",
}


@pytest.fixture
def secrets(org, settings):
    """Store a row of every model with encrypted fields under the old key; the new one is first."""
    settings.FIELD_KEYS = [OLD]
    account = ProviderAccount.objects.create(
        organization=org, name="mail", kind="smtp", channel="EMAIL", credentials='{"a": "secret-1"}'
    )
    endpoint = WebhookEndpoint.objects.create(
        organization=org,
        url="https://example.com/",
        types=["sent"],
        secret="secret-2",
        former_secret="secret-3",
    )
    platform = Platform.objects.create(organization=org, credentials="secret-4")
    settings.FIELD_KEYS = [NEW, OLD]
    return account, endpoint, platform


def run(*arguments):
    """Return the exit's reason and all that the command printed."""
    output, errors = io.StringIO(), io.StringIO()
    try:
        call_command("reencrypt_secrets", *arguments, stdout=output, stderr=errors)
    except CommandError as error:
        return str(error), output.getvalue() + errors.getvalue()
    return "", output.getvalue() + errors.getvalue()


def test_all_encrypted_fields_are_found():
    names = {f"{m._meta.label}.{field.name}" for m, field in reencryption.encrypted_fields()}
    assert names == FIELDS


def test_every_secret_is_readable_with_only_the_new_key_afterwards(secrets, settings):
    reason, shown = run("--check")
    assert reason == "4 values need an older key."
    assert set(shown.splitlines()) == {
        *(f"{name}: 0 had the first key, 1 need an older key, 0 unreadable" for name in FIELDS),
        "mfa.Authenticator.data: 0 had the first key, 0 need an older key, 0 unreadable",
    }
    assert run()[0] == ""
    assert run("--check") == (
        "",
        "".join(
            f"{model._meta.label}.{field.name}: "
            "1 had the first key, 0 need an older key, 0 unreadable\n"
            for model, field in reencryption.encrypted_fields()
        )
        + "mfa.Authenticator.data: 0 had the first key, 0 need an older key, 0 unreadable\n",
    )
    settings.FIELD_KEYS = [NEW]
    account, endpoint, platform = secrets
    for row in secrets:
        row.refresh_from_db()
    found = [account.credentials, endpoint.secret, endpoint.former_secret, platform.credentials]
    assert found == ['{"a": "secret-1"}', "secret-2", "secret-3", "secret-4"]
    settings.FIELD_KEYS = [OLD]
    with pytest.raises(UnreadableSecret):
        account.refresh_from_db()


def test_undecryptable_value_is_reported_and_kept(secrets, settings):
    _, endpoint, _ = secrets
    settings.FIELD_KEYS = [LOST]
    WebhookEndpoint.objects.update(secret="secret-5")
    settings.FIELD_KEYS = [NEW, OLD]
    reason, shown = run()
    assert reason == "No key decrypts 1 values; see above."
    assert f"messaging.WebhookEndpoint.secret: no key decrypts the row {endpoint.pk}\n" in shown
    assert "secret-" not in shown
    assert "gAAAA" not in shown
    settings.FIELD_KEYS = [LOST]
    assert WebhookEndpoint.objects.get().secret == "secret-5"
    settings.FIELD_KEYS = [NEW]
    assert Platform.objects.get().credentials == "secret-4"


@pytest.mark.parametrize("count", [1, 60])
def test_statements_do_not_grow_with_the_rows_of_a_batch(org, settings, count):
    settings.FIELD_KEYS = [OLD]
    for number in range(count):
        ProviderAccount.objects.create(
            organization=org, name=str(number), kind="smtp", channel="EMAIL", credentials="{}"
        )
    settings.FIELD_KEYS = [NEW, OLD]
    with CaptureQueriesContext(connection) as captured:
        reencryption.reencrypt()
    # a look at each field, and for the one with rows an update and a look for more
    assert len(captured) == len(FIELDS) + 2


def test_batches_cover_every_row(db, settings):
    settings.FIELD_KEYS = [OLD]
    for number in range(reencryption.BATCH + 1):
        org = factories.organization(f"org-{number}")
        Platform.objects.create(organization=org, credentials=f"secret-{number}")
    settings.FIELD_KEYS = [NEW, OLD]
    assert {each.name: each.old for each in reencryption.reencrypt()} == {
        **dict.fromkeys(FIELDS, 0),
        "crm.Platform.credentials": reencryption.BATCH + 1,
    }
    settings.FIELD_KEYS = [NEW]
    assert Platform.objects.filter(credentials__gt="").count() == reencryption.BATCH + 1
    assert {row.credentials for row in Platform.objects.all()} == {
        f"secret-{number}" for number in range(reencryption.BATCH + 1)
    }
