"""Requests through the router to cells on loopback."""

import asyncio
import json
import re

import pytest
from aiohttp import web

from rme.cells.router import routing
from rme.cells.router.environment import RouterBounds
from rme.cells.router.routing import KeyKind
from tests.cells.router.scene import BEARER, digest, played, scene

LARGE = b"x" * 200_000


def moved_to(name):
    async def answer(request):
        await request.read()
        return web.json_response({"error": {}}, status=421, headers={"RME-Cell": name})

    return answer


@played
async def test_call_goes_to_the_cell_of_its_token_after_one_look_up(s):
    s.us.owns(KeyKind.TOKEN, digest())
    for _ in range(3):
        answer = await s.call("POST", "/rme/v1/messages?a=%2F", BEARER, b"body")
        assert (answer.status, answer.cell) == (200, "us")
    assert [len(cell.requests) for cell in (s.eu, s.us)] == [0, 3]
    assert [len(cell.questions) for cell in (s.eu, s.us)] == [1, 1]
    last = s.us.requests[-1]
    assert (last.method, last.raw_path, s.us.bodies[-1]) == (
        "POST",
        "/rme/v1/messages?a=%2F",
        b"body",
    )


@played
async def test_simultaneous_calls_with_a_new_token_need_one_look_up(s):
    s.us.owns(KeyKind.TOKEN, digest())
    answers = await asyncio.gather(*(s.call(headers=BEARER) for _ in range(20)))
    assert {answer.cell for answer in answers} == {"us"}
    assert [len(cell.questions) for cell in (s.eu, s.us)] == [1, 1]


@played
async def test_an_unknown_token_is_answered_by_any_cell_and_asked_for_once(s):
    for _ in range(3):
        assert (await s.call(headers=BEARER)).status == 200  # these cells refuse nobody
    assert [len(cell.questions) for cell in (s.eu, s.us)] == [1, 1]


@played
async def test_forwarding_headers_from_clients_are_not_passed_on(s):
    headers = {
        "X-Forwarded-For": "203.0.113.9",
        "Forwarded": "for=203.0.113.9",
        "RME-Cell": "us",
        "X-Real-IP": "203.0.113.9",
        "X_Forwarded_For": "203.0.113.9",
        "Via": "a",
        "Connection": "close, X-Drop",
        "X-Drop": "1",
        "X-Request-Id": "mine",
        "TE": "trailers",
    }
    assert (await s.call(headers=headers, path="/rme/v1/docs")).status == 200
    (request,) = s.eu.requests + s.us.requests
    assert {name.lower(): text for name, text in request.headers.items()} == {
        "host": "rme.example.org",
        "via": "a",
        "x-request-id": "mine",
        "x-forwarded-for": "198.51.100.7",
        "forwarded": "for=198.51.100.7",
    }


@pytest.mark.parametrize(
    ("proxy", "sent", "received"),
    [
        ("1", {"X-Forwarded-For": "1.1.1.1, 192.0.2.9", "X-Forwarded-Proto": "https"}, "192.0.2.9"),
        ("forwarded", {"Forwarded": 'for="[2001:db8::1]:9";proto=https'}, "2001:db8::1"),
    ],
)
def test_forwarding_headers_of_a_configured_proxy_are_trusted(proxy, sent, received):
    async def play():
        async with scene(tls_proxy=proxy, base_url="https://rme.example.org") as s:
            await s.call(path="/rme/v1/docs", headers=sent)
            (request,) = s.eu.requests + s.us.requests
            node = f'"[{received}]"' if ":" in received else received
            assert request.headers["X-Forwarded-For"] == received
            assert request.headers["X-Forwarded-Proto"] == "https"
            assert request.headers["Forwarded"] == f"for={node};proto=https"

    asyncio.run(play())


@played
async def test_moved_organization_is_followed_once_and_remembered(s):
    s.eu.owns(KeyKind.TOKEN, digest(), "o1")
    s.eu.owns(KeyKind.API_KEY, "ab", "o1")
    await s.call(headers=BEARER)
    await s.call(path="/bot/api.php", headers={"X-API-Key": "rme_ab_c"})
    s.eu.handler = moved_to("us")
    answer = await s.call("POST", headers=BEARER, body=b"kept")
    assert (answer.cell, s.us.bodies) == ("us", [b"kept"])
    before = len(s.eu.requests)
    for path, headers in (("/rme/v1/x", BEARER), ("/bot/api.php", {"X-API-Key": "rme_ab_c"})):
        assert (await s.call(path=path, headers=headers)).cell == "us"
    assert len(s.eu.requests) == before


@played
async def test_a_long_body_cannot_be_sent_twice_so_the_client_has_to_repeat(s):
    s.eu.owns(KeyKind.TOKEN, digest())
    s.eu.handler = moved_to("us")
    for body in (LARGE, [b"x" * 50_000] * 4):
        s.router.owners.moved(routing.Key(KeyKind.TOKEN, digest()), "eu")
        answer = await s.call("POST", headers=BEARER, body=body)
        assert (answer.status, answer.headers["retry-after"]) == (503, "0")
        assert answer.json["error"]["code"] == "UNAVAILABLE"
        assert (await s.call("POST", headers=BEARER, body=body)).cell == "us"
    assert s.us.bodies == [LARGE, LARGE]


@played
async def test_cells_redirecting_to_each_other_answer_503(s):
    s.eu.owns(KeyKind.TOKEN, digest())
    s.eu.handler, s.us.handler = moved_to("us"), moved_to("eu")
    assert (await s.call(headers=BEARER)).status == 503
    s.us.handler = moved_to("nowhere")
    assert (await s.call(headers=BEARER)).status == 503


@played
async def test_a_pointer_counts_only_while_no_cell_has_the_organization(s):
    s.eu.owns(KeyKind.TOKEN, digest(), cell="us")
    assert (await s.call(headers=BEARER)).cell == "us"
    s.us.owns(KeyKind.TOKEN, digest("other"))
    s.eu.owns(KeyKind.TOKEN, digest("other"), cell="eu2")
    assert (await s.call(headers={"Authorization": "Bearer other"})).cell == "us"


@played
async def test_cell_that_is_down_affects_only_its_organizations(s):
    s.eu.owns(KeyKind.TOKEN, digest())
    s.us.owns(KeyKind.TOKEN, digest("american"))  # an organization of the same name
    american = {"Authorization": "Bearer american"}
    for headers in (BEARER, american):
        assert (await s.call(headers=headers)).status == 200
    await s.eu.stop()
    assert (await s.call(headers=BEARER)).status == 503  # it meets the closed connection
    for _ in range(3):
        down = await s.call("POST", headers=BEARER, body=b"x")
        assert (down.status, down.headers["retry-after"]) == (503, "1")
        assert (await s.call("POST", headers=american, body=b"x")).cell == "us"
        # it may be of the cell that cannot be asked
        unknown = await s.call(headers={"Authorization": "Bearer unknown"})
        assert (unknown.status, unknown.headers["retry-after"]) == (503, "1")
    bot = await s.call(path="/bot/api.php", headers={"X-API-Key": "rme_ab_c"})
    assert (bot.status, bot.json["code"], bot.json["error"]) == (503, 503, "unavailable")
    token = await s.call("POST", "/services/oauth2/token", {}, b"client_id=a")
    assert (token.status, token.json["error"]) == (503, "temporarily_unavailable")
    page = await s.call(path="/admin/", headers={"Cookie": "rme_cell=eu"})
    assert (page.status, b"/admin/login/?cell=us" in page.body) == (503, True)
    assert (await s.call(path="/readyz")).status == 200
    await s.eu.start()
    s.router.cells.by_name["eu"].down_until = 0.0
    assert (await s.call(headers=BEARER)).cell == "eu"


@played
async def test_post_with_lost_answer_is_sent_once(s):
    async def lose(request):
        await request.read()
        request.transport.abort()
        return web.Response()

    s.eu.owns(KeyKind.TOKEN, digest())
    await s.call("POST", headers=BEARER, body=b"first")  # now a connection is open
    s.eu.handler = lose
    answer = await s.call("POST", headers=BEARER, body=b"x")
    assert (answer.status, "retry-after" in answer.headers) == (502, False)
    assert "Idempotency-Key" in answer.json["error"]["message"]
    assert len(s.eu.requests) == 2
    assert (await s.call("GET", headers=BEARER)).status == 503


@played
async def test_answers_and_bodies_of_any_length_pass_unchanged(s):
    text = b"a line\n" * 200_000

    async def echo(request):
        found = web.StreamResponse(headers={"Content-Type": "text/csv", "Connection": "X-Hop"})
        found.headers["X-Hop"] = "1"
        await found.prepare(request)
        async for piece in request.content.iter_any():
            await found.write(piece)
        return found

    s.eu.owns(KeyKind.TOKEN, digest())
    s.eu.handler = echo
    pieces = [text[at : at + 100_000] for at in range(0, len(text), 100_000)]
    for body in (text, pieces, b"short"):
        answer = await s.call("PUT", headers=BEARER, body=body)
        assert answer.body == (text if isinstance(body, list) else body)
    assert answer.headers["content-type"] == "text/csv"
    assert not {"connection", "x-hop"} & answer.headers.keys()


def test_too_long_too_slow_and_too_many_bodies_are_rejected():
    async def play():
        bounds = RouterBounds(body=len(LARGE) - 1, idle_seconds=0.5, memory=100_000)
        async with scene(bounds) as s:
            assert (await s.call("POST", "/rme/v1/x", body=LARGE)).status == 413
            assert s.eu.requests + s.us.requests == []
            slow = await s.call("POST", "/rme/v1/x", {"Content-Length": "9"}, [])
            assert slow.status == 408
            s.router.memory.used = 99_999
            busy = await s.call("POST", "/rme/v1/x", body=[b"x" * 9, b"y"])
            assert (busy.status, busy.headers["retry-after"]) == (503, "1")
            assert s.router.memory.used == 99_999

    asyncio.run(play())


def test_client_with_slow_bodies_uses_only_its_share_of_memory():
    async def play():
        async with scene(RouterBounds(client_memory=100_000)) as s:
            s.router.memory.add("198.51.100.7", 99_999)
            body = [b"x" * 9, b"y"]
            assert (await s.call("POST", "/rme/v1/x", body=body)).status == 503
            assert (await s.call("POST", "/rme/v1/x", body=body, peer="192.0.2.1")).status == 200
            assert s.router.memory.by_client == {"198.51.100.7": 99_999}

    asyncio.run(play())


def test_hanging_cell_gets_a_bounded_number_of_requests():
    async def play():
        ended = asyncio.Event()

        async def hang(request):
            await ended.wait()
            return web.json_response({"cell": "eu"})

        async with scene(RouterBounds(in_flight=2)) as s:
            s.eu.owns(KeyKind.TOKEN, digest())
            s.eu.handler = hang
            calls = [asyncio.create_task(s.call(headers=BEARER)) for _ in range(5)]
            refused = [await each for each in asyncio.as_completed(calls) if ended.set() is None]
            assert sorted(answer.status for answer in refused) == [200, 200, 503, 503, 503]
            messages = {each.json["error"]["message"] for each in refused if each.status == 503}
            assert messages == {"Too many calls are waiting."}

    asyncio.run(play())


@played
async def test_calls_between_cells_and_absolute_targets_are_not_passed_on(s):
    for path in ("/cell/owner", "/%63ell/owner", "/cell/"):
        assert (await s.call("POST", path, body=b"{}")).status == 404
    assert (await s.call(path="http://10.0.0.1/")).status == 400
    assert s.eu.requests + s.us.requests == []


@played
async def test_a_browser_stays_at_its_cell_and_shows_it_no_session_of_another(s):
    first = await s.call(path="/admin/")
    assert first.headers["set-cookie"] == (
        f"rme_cell={first.cell}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax"
    )
    cookies = "sessionid_eu=e; rme_cell=us; sessionid_us=u; csrftoken=c"
    for _ in range(3):
        answer = await s.call(path="/admin/", headers={"Cookie": cookies})
        assert (answer.cell, "set-cookie" in answer.headers) == ("us", False)
    assert s.us.requests[-1].headers["Cookie"] == "rme_cell=us; sessionid_us=u; csrftoken=c"
    named = await s.call(path="/admin/login/?cell=eu", headers={"Cookie": cookies})
    assert (named.cell, named.headers["set-cookie"][:11]) == ("eu", "rme_cell=eu")
    for forged in ("rme_cell=nowhere", "rme_cell=", "rme_cell=../eu"):
        assert (await s.call(path="/admin/", headers={"Cookie": forged})).status == 200


@played
async def test_log_in_goes_to_the_persons_cell_without_revealing_accounts(s):
    s.us.owns(KeyKind.PERSON, "olga@example.org", "")

    async def cell_of(name, cookie=""):
        form = f"username={name}&password=x".encode()
        answer = await s.call("POST", "/admin/login/", {"Cookie": cookie}, form)
        return answer.cell

    assert await cell_of("olga%40example.org", "rme_cell=eu") == "us"
    strangers = {f"n{number}": await cell_of(f"n{number}") for number in range(20)}
    assert set(strangers.values()) == {"eu", "us"}
    for name, cell in strangers.items():
        # the cookie changes nothing, and each cell is asked each time
        assert await cell_of(name, "rme_cell=us") == cell
    assert len(s.eu.questions) == len(s.us.questions) == 41


def test_log_in_and_probe_floods_ask_cells_a_bounded_number_of_times():
    async def run():
        async with scene(RouterBounds(look_ups=2)) as s:
            form = {number: f"username=n{number}&password=x".encode() for number in range(10)}
            answers = await asyncio.gather(
                *(s.call("POST", "/admin/login/", body=body) for body in form.values())
            )
            assert sorted(each.status for each in answers) == [200] * 2 + [503] * 8
            assert len(s.eu.questions) == len(s.us.questions) == 2
            assert (await s.call("POST", "/admin/login/", body=form[9])).status == 200
            probes = await asyncio.gather(*(s.call(path="/readyz") for _ in range(10)))
            assert {each.status for each in probes} == {200}
            assert len(s.eu.questions) == len(s.us.questions) == 4

    asyncio.run(run())


@played
async def test_requests_for_any_cell_are_answered_while_one_is_up(s):
    await s.eu.stop()
    for _ in range(8):
        s.router.cells.by_name["eu"].down_until = 0.0
        assert (await s.call("POST", "/rme/v1/docs", body=b"kept")).cell == "us"
    assert set(s.us.bodies) == {b"kept"}
    await s.us.stop()
    assert (await s.call(path="/rme/v1/docs")).status == 503


@played
async def test_content_length_of_a_chunked_body_is_ignored(s):
    s.eu.owns(KeyKind.TOKEN, digest())
    for pieces in ([b"abc", b"def"], [b"x" * 50_000] * 3):
        answer = await s.call("POST", headers={**BEARER, "Content-Length": "2"}, body=pieces)
        assert answer.status == 200
    assert s.eu.bodies == [b"abcdef", b"x" * 150_000]


@played
async def test_router_serves_its_probes_and_metrics(s):
    s.eu.owns(KeyKind.TOKEN, digest())
    await s.call(headers=BEARER)
    assert (await s.call(path="/livez")).body == b"ok\n"
    local = {"path": "/metrics", "headers": {"Host": "127.0.0.1:8000"}, "peer": "127.0.0.1"}
    text = (await s.call(**local)).body.decode()
    assert 'rme_router_requests_total{cell="eu",status="200"}' in text
    assert (await s.call(path="/metrics")).status == 404
    local["headers"] = {"Host": "127.0.0.1", "X-Forwarded-For": "1.1.1.1"}
    assert (await s.call(**local)).status == 404
    await s.eu.stop()
    await s.us.stop()
    assert (await s.call(path="/readyz")).status == 503


@played
async def test_a_scrape_shows_a_cell_without_calls(s):
    async def shown():
        local = {"path": "/metrics", "headers": {"Host": "127.0.0.1:8000"}, "peer": "127.0.0.1"}
        text = (await s.call(**local)).body.decode()
        return re.findall(r'rme_router_cell_up\{cell="(\w+)"\} (\S+)', text)

    assert await shown() == [("eu", "1.0"), ("us", "1.0")]
    await s.eu.stop()
    for _ in range(2):
        s.router.cells.by_name["eu"].down_until = 0.0  # long ago
        assert await shown() == [("eu", "0.0"), ("us", "1.0")]
    await s.eu.start()
    s.router.cells.by_name["eu"].down_until = 0.0
    assert await shown() == [("eu", "1.0"), ("us", "1.0")]


@played
async def test_refusals_of_the_api_have_its_shape(s):
    await s.eu.stop()
    error = (await s.call(headers=BEARER)).json["error"]
    assert json.dumps(sorted(error)) == json.dumps(
        ["code", "details", "message", "messageId", "requestId"]
    )
