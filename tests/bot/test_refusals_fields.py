"""What is refused of parameters and bodies, in which order, and how: bodies whole."""

import pytest

from tests.bot.conftest import FORM, bad
from tests.bot.refusals_scene import EMAIL, GET, POST, refused, status_and_body

pytestmark = pytest.mark.django_db


@pytest.mark.promise("bot-failures-4", "bot-failures-7")
@pytest.mark.parametrize(
    "content_type",
    ["application/json", "text/plain", "", "application/x-www-form-urlencoded; charset=latin-1"],
)
def test_create_that_is_not_a_form_is_rejected(bot, content_type):
    body = f"action=Create_Contact&org={bot.org.pk}&lastName=L".encode()
    path = f"{POST}?org={bot.org.pk}"
    response = bot.client.generic("POST", path, body, content_type, headers=bot.headers())
    assert (response.status_code, response.json()["error"]) == (415, "unsupported_media_type")
    refused(bot.client.generic("POST", POST, body, content_type, headers=bot.headers()))


@pytest.mark.parametrize("in_query", [True, False])
def test_create_in_json_is_told_its_content_type(bot, in_query):
    path = f"{POST}?org={bot.org.pk}" if in_query else POST
    body = {"action": "Create_Contact", "org": bot.org.pk, "lastName": "L"}
    response = bot.client.post(path, body, "application/json", headers=bot.headers())
    assert response.status_code == 415
    assert response.json()["message"] == (
        "Send the fields as a form (application/x-www-form-urlencoded or multipart/form-data), "
        "not as application/json."
    )
    bot.key = "wrong"
    refused(bot.client.post(path, body, "application/json", headers=bot.headers()))


@pytest.mark.promise("bot-failures-4", "bot-failures-16", "bot-failures-20")
@pytest.mark.parametrize(
    ("body", "content_type", "status", "error"),
    [
        (b"x", "multipart/form-data", 400, "invalid_parameter"),
        (b"x", "multipart/form-data; boundary=b", 400, "unknown_action"),
        (b"a=1&" * 2000, FORM, 400, "invalid_parameter"),
        (b"a=" + b"x" * (1024 * 1024), FORM, 413, "payload_too_large"),
        (b"x=1", FORM, 400, "unknown_action"),
    ],
    ids=["no-boundary", "no-parts", "many-fields", "large", "nothing"],
)
def test_unreadable_body_is_rejected(bot, body, content_type, status, error):
    path = f"{POST}?org={bot.org.pk}"
    response = bot.client.generic("POST", path, body, content_type, headers=bot.headers())
    assert (response.status_code, response.json()["error"]) == (status, error)
    refused(bot.client.generic("POST", POST, body, content_type, headers=bot.headers()))


@pytest.mark.promise("bot-failures-20")
def test_query_with_over_a_thousand_parameters_is_rejected(bot):
    path = f"{GET}?org={bot.org.pk}&" + "a=1&" * 1001
    refused(bot.client.get(path, headers=bot.headers()))


@pytest.mark.promise("bot-failures-3", "bot-failures-8")
@pytest.mark.parametrize("action", ["", "Confirm_Nothing", "confirm_contact", "Create_Contact"])
def test_an_unknown_action_is_refused_before_its_parameters(bot, action):
    wanted = bad("action", "is not one of this path", "unknown_action")
    assert status_and_body(bot.get(action)) == (400, wanted)
    assert status_and_body(bot.post(action.replace("Create", "Confirm"))) == (400, wanted)


@pytest.mark.promise("bot-failures-3")
def test_problems_are_reported_in_their_order(bot):
    """Everything is wrong at first, and each problem is mended as it is reported."""
    path, right, bot.key = f"{POST}?org={bot.org.pk}", bot.key, "wrong"
    form = "action={}&email=x"

    def answer_to(method, content_type, action):
        body = form.format(action)
        response = bot.client.generic(method, path, body, content_type, headers=bot.headers())
        return response.status_code, response.json().get("error")

    assert answer_to("PUT", "application/json", "x") == (401, None)
    bot.key = right
    assert answer_to("PUT", "application/json", "x") == (405, "method_not_allowed")
    assert answer_to("POST", "application/json", "x") == (415, "unsupported_media_type")
    assert answer_to("POST", FORM, "x") == (400, "unknown_action")
    assert answer_to("POST", FORM, "Create_Contact") == (400, "missing_parameter")
    form += "&lastName=L"
    assert answer_to("POST", FORM, "Create_Contact") == (400, "invalid_email")
    form = form.replace("=x", "=a@b.example")
    assert answer_to("POST", FORM, "Create_Contact") == (200, None)


REQUIRED = [
    ("Confirm_Contact", "email"),
    ("Confirm_Contact_Phone", "phone"),
    ("Confirm_Case", "email"),
    ("Confirm_Registration", "email"),
    ("Confirm_Speaker", "contactID"),
    ("Confirm_Exhibitor", "contactID"),
    ("Confirm_Account", "accountName"),
]


@pytest.mark.promise("bot-failures-1", "bot-failures-9", "bot-failures-11")
@pytest.mark.parametrize(("action", "name"), REQUIRED)
def test_a_missing_parameter_is_refused(bot, action, name):
    wanted = (400, bad(name, "is missing", "missing_parameter"))
    assert status_and_body(bot.get(action)) == wanted
    assert status_and_body(bot.get(action, **{name: " \t"})) == wanted
    nul = bot.get(action, **{name: "a\0b"})
    assert status_and_body(nul) == (400, bad(name, "must not contain NUL characters"))
    long = bot.get(action, **{name: "x" * 256})
    assert status_and_body(long) == (400, bad(name, "is longer than 255 characters"))
    twice = bot.get(action, **{name: "a", name.upper(): "b"})
    assert status_and_body(twice) == (400, bad(name, "is given more than once"))


@pytest.mark.promise("bot-failures-9")
@pytest.mark.parametrize(
    ("action", "fields", "name"),
    [
        ("Create_Account", {}, "accountName"),
        ("Create_Contact", {"firstName": "A"}, "lastName"),
        ("Create_Case", {"Issue": "I"}, "Subject"),
        ("Create_Case", {"Subject": "S"}, "Issue"),
    ],
)
def test_a_missing_field_is_refused(bot, action, fields, name):
    wanted = (400, bad(name, "is missing", "missing_parameter"))
    assert status_and_body(bot.post(action, **fields)) == wanted


@pytest.mark.promise("bot-failures-10")
@pytest.mark.parametrize(
    "email", ["a", "a@", "@b.example", "a b@c.example", "a@b", "a@b.example,c@d.example"]
)
def test_a_bad_email_is_refused(bot, email):
    wanted = (400, bad("email", "is not an email address", "invalid_email"))
    assert status_and_body(bot.post("Create_Contact", lastName="L", email=email)) == wanted
    if " " not in email:
        assert status_and_body(bot.get("Confirm_Contact", email=email)) == wanted


@pytest.mark.promise("bot-failures-10")
@pytest.mark.parametrize("phone", ["x", "1", "+", "+999999999999999999", "12" * 40])
def test_a_bad_phone_is_refused(bot, phone):
    wanted = (400, bad("phone", "is not a phone number", "invalid_phone"))
    assert status_and_body(bot.get("Confirm_Contact_Phone", phone=phone)) == wanted


@pytest.mark.promise("bot-failures-11")
def test_issue_longer_than_32000_characters_is_rejected(bot):
    assert bot.create("Create_Case", Subject="S", Issue="x" * 32_000)[1]
    response = bot.post("Create_Case", Subject="S", Issue="x" * 32_001)
    assert status_and_body(response) == (400, bad("Issue", "is longer than 32,000 characters"))


@pytest.mark.promise("bot-calls-4")
def test_names_are_read_in_any_case_and_unknown_ones_passed_over(bot):
    path = f"{GET}?ACTION=Confirm_Contact&Org={bot.org.pk}&EMAIL={EMAIL}&session=1&x=%00"
    response = bot.client.get(path, headers=bot.headers())
    assert (response.status_code, response.json()["msg"]) == (200, [])


@pytest.mark.promise("bot-failures-20")
def test_invalid_utf8_in_query_finds_nothing(bot):
    path = f"{GET}?action=Confirm_Account&org={bot.org.pk}&accountName=%ff%fe%ED%A0%80"
    response = bot.client.get(path, headers=bot.headers())
    assert (response.status_code, response.json()["msg"]) == (200, [])
