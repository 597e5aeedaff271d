"""A person goes from one cell to another. Both have one database here, and each its browser."""

import base64
import json
import time
from uuid import uuid4

import pytest
import time_machine

from rme.cells import signatures
from rme.tenants.access import mail
from rme.tenants.models import Assertion, User
from tests import audited, factories
from tests.tenants.access.scene import (
    CODE,
    browser,
    code_of,
    is_in,
    links,
    log_in,
    member,
    with_totp,
)

pytestmark = pytest.mark.django_db
CELLS, ENTER, CONNECT = (f"/admin/account/cells/{path}" for path in ("", "enter/", "connect/"))
SECRET = "s" * 32


@pytest.fixture(autouse=True)
def cells(settings):
    settings.CELL, settings.CELL_SECRET = "eu", SECRET
    settings.CELLS = {"eu": "http://127.0.0.1:1", "us": "http://127.0.0.1:2"}


@pytest.fixture
def org():
    return factories.organization()


@pytest.fixture
def there(settings):
    """Return a browser with a hand-off, in the other cell."""

    def arrive(client, to="us/acme"):
        answer = client.post(CELLS, {"to": to})
        assert (answer.status_code, answer["Location"]) == (303, ENTER)
        assert answer.cookies["rme_cell"].value == "us"
        cookie = answer.cookies["rme_hand_off"]
        assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == (ENTER, True, "Lax")
        settings.CELL = "us"
        other = browser()
        other.cookies["rme_hand_off"] = cookie.value
        return other

    return arrive


def logged_in(name="sam"):
    client = browser()
    log_in(client, name)
    assert is_in(client)
    return client


def test_a_person_goes_to_an_organization_of_another_cell_without_a_log_in(org, there):
    member(org)
    here = logged_in()
    began = here.session["rme_began"]
    other = there(here)
    answer = other.get(ENTER)
    assert (answer.status_code, answer["Location"]) == (303, "/admin/console/acme/messages/")
    assert answer.cookies["rme_hand_off"].value == ""
    assert other.get(answer["Location"]).status_code == 200
    assert other.session["rme_began"] == began
    assert is_in(here)
    assert audited.summaries() == [
        ("sam", "LOGGED_IN", "password"),
        ("sam", "HANDED_OVER", "cell us"),
        ("sam", "LOGGED_IN", "cell eu, password"),
    ]


def test_hand_off_works_once(org, there):
    member(org)
    other = there(logged_in())
    cookie = other.cookies["rme_hand_off"].value
    assert other.get(ENTER).status_code == 303
    again = browser()
    again.cookies["rme_hand_off"] = cookie
    assert again.get(ENTER)["Location"] == "/admin/login/"
    assert not is_in(again)


def test_hand_off_is_valid_for_half_a_minute_and_one_cell(org, there, settings):
    member(org)
    here = logged_in()
    with time_machine.travel(time.time(), tick=False) as clock:
        other = there(here)
        clock.shift(31)
        assert other.get(ENTER)["Location"] == "/admin/login/"
    settings.CELL = "eu"
    other = there(here)
    settings.CELL = "eu"
    assert other.get(ENTER)["Location"] == "/admin/login/"
    assert not Assertion.objects.exists()


def test_a_forged_hand_off_is_refused(org, there):
    user = member(org)
    good = there(logged_in()).cookies["rme_hand_off"].value
    text, _, signature = good.partition(".")
    claims = json.loads(base64.urlsafe_b64decode(text + "=="))
    changed = json.dumps({**claims, "person": str(uuid4())}).encode()
    other = base64.urlsafe_b64encode(changed).decode()
    by_another = signatures.sign("t" * 32, "hand-off", changed).partition(" ")[2]
    for_a_call = signatures.sign(SECRET, "POST /cell/owner", changed).partition(" ")[2]
    forged = (
        "",
        ".",
        "x",
        f"{other}.{signature}",
        f"{other}.{by_another}",
        f"{other}.{for_a_call}",
    )
    for cookie in (*forged, f"{text}.{signature[:-1]}", f"é.{signature}", "%00.1.2"):
        client = browser()
        client.cookies["rme_hand_off"] = cookie
        assert client.get(ENTER)["Location"] == "/admin/login/"
        assert not is_in(client)
    assert User.objects.get(pk=user.pk).last_login is not None


def test_a_second_factor_is_proven_once_for_all_cells(org, there):
    with_totp(member(org))
    here = browser()
    log_in(here)
    here.post(CODE, {"code": code_of()})
    other = there(here)
    assert other.get(ENTER)["Location"] == "/admin/console/acme/messages/"
    assert audited.summaries(action="LOGGED_IN")[-1][2] == "cell eu, password, second factor"


def test_unproven_second_factor_is_asked_for(org, there):
    user = member(org)
    here = logged_in()
    other = there(here)
    with_totp(user)  # the account in the other cell has one
    assert other.get(ENTER)["Location"] == CODE
    assert not is_in(other)
    other.post(CODE, {"code": code_of()})
    assert is_in(other)


def test_second_factor_of_the_first_cell_satisfies_a_requiring_organization(org, there):
    user = with_totp(member(org))
    here = browser()
    log_in(here)
    here.post(CODE, {"code": code_of()})
    other = there(here)
    user.authenticator_set.all().delete()
    org.second_factor_required = True
    org.save()
    assert other.get(other.get(ENTER)["Location"]).status_code == 200


def test_accounts_are_connected_once_by_a_log_in_to_both(org, there):
    user = member(org)
    here = logged_in()
    before = user.person = User.objects.get(pk=user.pk).person
    other = there(here)
    User.objects.filter(pk=user.pk).update(person=uuid4())  # the account there is not known
    log_in_page = other.get(ENTER)["Location"]
    assert log_in_page == "/admin/login/?next=%2Fadmin%2Faccount%2Fcells%2Fconnect%2F&cell=us"
    assert other.get(CONNECT).status_code == 302  # only whoever logs in
    assert log_in(other, to=log_in_page)["Location"] == CONNECT
    page = other.get(CONNECT)
    assert "came from the cell eu" in page.content.decode()
    assert User.objects.get(pk=user.pk).person != before  # not before it was confirmed
    assert other.post(CONNECT)["Location"] == "/admin/console/acme/messages/"
    assert User.objects.get(pk=user.pk).person == before
    assert audited.summaries(action="CONNECTED") == [("sam", "CONNECTED", "cell eu")]
    assert other.get(CONNECT).status_code == 404  # once


def test_already_connected_account_is_not_taken_over(org, there):
    first, second = member(org), member(org, name="eve")
    other = there(logged_in())
    person = User.objects.get(pk=first.pk).person
    User.objects.filter(pk=first.pk).update(is_active=False)
    other.get(ENTER)
    log_in(other, "eve")
    assert other.post(CONNECT)["Location"] == "/admin/"
    assert list(User.objects.filter(person=person)) == [first]
    assert second.pk != first.pk


def test_users_of_programs_and_disabled_people_do_not_arrive(org, there, settings):
    user = member(org)
    for fields in ({"is_active": False}, {"is_staff": False, "is_active": True}):
        User.objects.filter(pk=user.pk).update(is_active=True, is_staff=True)
        settings.CELL = "eu"
        other = there(logged_in())
        User.objects.filter(pk=user.pk).update(**fields)
        assert other.get(ENTER)["Location"].startswith("/admin/login/")
        assert not is_in(other)


def test_hand_off_needs_a_session_and_another_cell(org, settings):
    member(org)
    assert browser().post(CELLS, {"to": "us/acme"})["Location"].startswith("/admin/login/")
    client = logged_in()
    for to in ("", "eu/acme", "nowhere/acme", "us%2Facme"):
        assert client.post(CELLS, {"to": to}).status_code == 404
    settings.CELL = ""
    assert client.post(CELLS, {"to": "us/acme"}).status_code == 404
    assert client.get(CELLS).status_code == 200
    assert client.get(ENTER).status_code == 303
    assert client.post(ENTER).status_code == 405


def test_handed_over_session_ends_when_the_original_would_have(org, there, settings):
    member(org)
    here = logged_in()
    session = here.session
    session["rme_began"] = int(time.time()) - settings.SESSION_SECONDS + 1
    session.save()
    with time_machine.travel(time.time(), tick=False) as clock:
        other = there(here)
        assert other.get(other.get(ENTER)["Location"]).status_code == 200
        clock.shift(2)
        assert other.get("/admin/")["Location"].startswith("/admin/login/")


def test_log_out_in_one_cell_ends_the_sessions_of_its_log_in_everywhere(org, there, client):
    user = User.objects.get(pk=member(org).pk)
    here, another = logged_in(), logged_in()
    other = there(here)
    other.get(ENTER)
    assert is_in(other)
    question = {"person": str(user.person), "chain": here.session["rme_chain"]}

    def end(question):
        text = json.dumps(question).encode()
        header = signatures.sign(SECRET, "POST /cell/log-out", text)
        headers = {"Authorization": header}
        return client.post("/cell/log-out", text, "application/json", headers=headers).json()

    assert end({**question, "chain": "other"}) == end({**question, "chain": ""}) == {"ended": 0}
    assert end({**question, "person": str(uuid4())}) == {"ended": 0}
    assert end(question) == {"ended": 2}  # both cells have one database here
    assert [is_in(each) for each in (here, other, another)] == [False, False, True]
    assert client.post("/cell/log-out", "{}", "application/json").status_code == 404


def test_log_out_does_not_wait_for_cells_that_are_down(org):
    member(org)
    client = logged_in()
    assert client.post("/admin/logout/").status_code == 302
    assert not is_in(client)


def test_a_link_for_a_new_password_names_the_cell(org, mailoutbox, settings):
    settings.LINK_QUERY = "?cell=eu"  # as the settings of a cell have it: tests/test_optional.py
    member(org)
    assert mail.send_password_resets("sam@example.com") == 1
    (link,) = links(mailoutbox[0].body)
    assert link.endswith("/?cell=eu")
