"""Each call counts for its organization and its person before it does anything."""

import threading

import pytest

from rme.core.http.serving.gateway import REFUSAL
from rme.core.process.admission import NOBODY, TURN, FairPool, Owners, too_many
from tests.messaging.console.studio.scene import client_of
from tests.rest import REQUEST_ID, Api, error

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool():
    """Return a pool of six threads, of which an organization has five and a person three."""
    fair_pool = FairPool(6, "test")
    fair_pool.held = threading.Event()
    yield fair_pool
    fair_pool.held.set()
    fair_pool.shutdown()


def hold(pool, owners):
    started = threading.Event()
    pool.submit(owners, lambda: (started.set(), pool.held.wait(20)))
    assert started.wait(20)


def turn_of(pool):
    """Return the turn of a call that runs and whose owners are not known."""
    started = threading.Event()
    turn = pool.enter(NOBODY, lambda turn: (started.set(), pool.held.wait(20)), may_repeat=True)
    assert started.wait(20)
    return turn


def get(client, org, path, **environ):
    token = Api(org).token
    headers = {"HTTP_AUTHORIZATION": f"Bearer {token}", "HTTP_X_REQUEST_ID": REQUEST_ID}
    return client.get(f"/rme/v1{path}", **headers, **environ)


def test_rest_call_counts_for_its_organization_and_starts_again_beyond_its_share(client, org, pool):
    one = turn_of(pool)
    assert get(client, org, "/templates", **{TURN: one}).status_code == 200
    assert (one.claimed, one.starts_again) == (Owners("acme"), False)
    for _ in range(4):
        hold(pool, Owners("acme"))
    two = turn_of(pool)
    refused = get(client, org, "/templates", **{TURN: two})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert (two.claimed, two.starts_again) == (Owners("acme"), True)


def test_page_counts_for_its_person_and_its_organization(client, org, pool):
    client = client_of(type(client), org, "ada")
    user = client.user
    page = f"/admin/console/{org.pk}/templates/"
    one = turn_of(pool)
    assert client.get(page, **{TURN: one}).status_code == 200
    assert (one.claimed, one.starts_again) == (Owners("acme", str(user.pk)), False)
    for _ in range(2):
        hold(pool, Owners("", str(user.pk)))
    two = turn_of(pool)
    refused = client.get(page, **{TURN: two})
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert two.starts_again


def test_rejected_request_is_answered_in_the_shape_of_its_path(client, org):
    refusal = too_many()
    rest = get(client, org, "/templates", **{REFUSAL: refusal})
    assert (rest.status_code, rest.headers["Retry-After"]) == (429, "1")
    assert rest.json() == error("RATE_LIMITED", refusal.message)
    page = client.get("/admin/", **{REFUSAL: refusal})
    assert (page.status_code, page.headers["Retry-After"]) == (429, "1")
    assert refusal.message in page.content.decode()
