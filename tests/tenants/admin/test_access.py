"""Applications and API keys: secrets are shown once; and the log of every change."""

import re

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from oauth2_provider.models import AccessToken

from rme.crm.models import Account
from rme.tenants.models import ApiKey, Application, ApplicationKey
from rme.tenants.oauth import api_keys, applications
from tests import audited, factories
from tests.rest import token
from tests.tenants.admin.scene import button, fill, page, person
from tests.tenants.conftest import KEY, public_pem

OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
pytestmark = pytest.mark.django_db


def everywhere(root, *models):
    """Return the HTML of all pages of models' rows."""
    urls = [page(model, "changelist") for model in models]
    for model in models:
        for row in model.objects.all():
            urls += [page(model, name, row.pk) for name in ("change", "history", "delete")]
    return "".join(root.get(url).content.decode() for url in ["/admin/", *urls])


@pytest.mark.promise("tokens-22")
def test_an_applications_secret_is_shown_once(root, org):
    user = factories.integration_user("robot")
    form = {"organization": org.pk, "name": "CRM", "user": user.pk, "mode": "LIVE"}
    made = root.post(page(Application, "add"), form, follow=True)
    row = Application.objects.get(name="CRM")
    (secret,) = re.findall(r"<code[^>]*>([A-Za-z0-9]{48})</code>", made.content.decode())
    assert token(row.client_id, secret).status_code == 200
    assert "no-store" in made["Cache-Control"]
    shown = everywhere(root, Application)
    assert secret not in shown
    assert row.client_secret not in shown


def test_a_new_secret_takes_the_place_of_the_old_one(root, org):
    row = fill(org).application
    before = row.client_secret
    asked = root.get(button(Application, row, "rotate")).content.decode()
    assert "access tokens stop working within 30 seconds" in asked
    row.refresh_from_db()
    assert row.client_secret == before  # asking does nothing
    assert root.post(button(Application, row, "rotate"), {"ends": "x"}).status_code == 200
    row.refresh_from_db()
    assert row.client_secret == before  # nor does a choice that is not there
    made = root.post(button(Application, row, "rotate"), {"ends": "0"}, follow=True)
    (secret,) = re.findall(r"<code[^>]*>([A-Za-z0-9]{48})</code>", made.content.decode())
    assert token(row.client_id, secret).status_code == 200
    assert secret not in everywhere(root, Application)


def test_old_secret_stays_valid_until_it_is_ended(root, org):
    row = fill(org).application
    first = applications.rotate_secret(row)
    made = root.post(button(Application, row, "rotate"), {"ends": "24"}, follow=True)
    (secret,) = re.findall(r"<code[^>]*>([A-Za-z0-9]{48})</code>", made.content.decode())
    assert 'data-copies="secret-2"' in made.content.decode()
    assert [token(row.client_id, each).status_code for each in (first, secret)] == [200, 200]
    again = root.post(button(Application, row, "rotate"), {"ends": "1"}).content.decode()
    assert "End the former secret first" in again
    asked = root.get(button(Application, row, "end_former")).content.decode()
    assert "last used 20" in asked
    root.post(button(Application, row, "end_former"))
    assert [token(row.client_id, each).status_code for each in (first, secret)] == [401, 200]
    lead = root.post(button(Application, row, "end_former"), follow=True).content.decode()
    assert "There is no former secret" in lead
    actions = [line.entry.action for line in audited.entries(kind="tenants.application")]
    assert actions[-2:] == ["KEY_ROTATED", "KEY_REVOKED"]
    assert not any(secret in str(line.lines) for line in audited.entries())


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"keys-0-DELETE": "on"}, 0),
        ({"keys-0-material": public_pem(OTHER_KEY)}, 0),
        ({"keys-0-name": "renamed"}, 1),
    ],
    ids=["deleted", "replaced", "renamed"],
)
def test_tokens_end_with_their_signing_key(root, org, changes, left):
    row = fill(org).application
    key = ApplicationKey.objects.create(application=row, name="key", material=public_pem(KEY))
    secret = applications.rotate_secret(row)
    assert token(row.client_id, secret).status_code == 200
    form = {
        "organization": org.pk,
        "name": row.name,
        "user": row.user_id,
        "mode": row.mode,
        "keys-TOTAL_FORMS": 1,
        "keys-INITIAL_FORMS": 1,
        "keys-0-application": row.pk,
        "keys-0-id": key.pk,
        "keys-0-name": "key",
        "keys-0-material": key.material,
    }
    saved = root.post(page(Application, "change", row.pk), {**form, **changes}, follow=True)
    assert AccessToken.objects.filter(application=row).count() == left
    assert ("A key was removed." in saved.content.decode()) == (not left)


@pytest.mark.promise("tokens-22")
def test_an_api_key_is_shown_once_and_can_be_revoked(root, org):
    form = {"organization": org.pk, "name": "bot", "networks": ""}
    made = root.post(page(ApiKey, "add"), form)
    assert made.status_code == 302
    stolen = person("other", org, "OWNER")
    stolen.cookies["rme_new_secret"] = made.cookies["rme_new_secret"].value
    pattern = r"(rme_[a-z0-9]{16}_[\w-]{43})"
    assert re.findall(pattern, stolen.get(made["Location"]).content.decode()) == []
    (text,) = re.findall(pattern, root.get(made["Location"]).content.decode())
    assert re.findall(pattern, root.get(made["Location"]).content.decode()) == []
    assert ApiKey.objects.count() == 1
    assert api_keys.verify(text, org.pk) is not None
    row = ApiKey.objects.get()
    shown = everywhere(root, ApiKey)
    assert text not in shown
    assert row.digest not in shown
    assert row.public_id in shown
    assert root.get(button(ApiKey, row, "revoke")).status_code == 200
    assert api_keys.verify(text, org.pk) is not None  # asking does nothing
    root.post(button(ApiKey, row, "revoke"))
    assert api_keys.verify(text, org.pk) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("actions", "all"),
        ("actions", "[1]"),
        ("networks", "192.0.2.0/24, 10.0.0.1/8"),
        ("networks", "[]"),
    ],
)
def test_invalid_restrictions_are_rejected(root, org, field, value):
    form = {"organization": org.pk, "name": "bot", "networks": "", field: value}
    assert set(root.post(page(ApiKey, "add"), form).context["adminform"].form.errors) == {field}


def test_every_change_is_logged_with_both_values(root, org):
    row = Account.objects.create(organization=org, name="Lovelace", phone="044")
    assert root.post(page(Account, "change", row.pk), {"name": "Byron"}).status_code == 302
    root.post(page(Account, "delete", row.pk), {"post": "yes"})
    changed, deleted = audited.entries()
    assert changed.lines == ["name: Lovelace → Byron", "phone: 044 → –"]
    assert "name: Byron → –" in deleted.lines
    assert [each.entry.action for each in (changed, deleted)] == ["CHANGED", "DELETED"]
    shown = root.get(f"/admin/console/{org.pk}/audit/").content.decode()
    assert "Lovelace → Byron" in shown


def test_the_history_of_a_row_shows_its_values(root, org):
    row = Account.objects.create(organization=org, name="Lovelace")
    root.post(page(Account, "change", row.pk), {"name": "Byron"})
    shown = root.get(page(Account, "history", row.pk)).content.decode()
    assert "name: Lovelace → Byron" in shown
