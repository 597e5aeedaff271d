"""Links that tell of clicks: what is rewritten in an HTML text, and what a token says."""

import re
from uuid import UUID

import pytest

from messaging.content import tracked_links
from messaging.content.tracked_links import CLICK, MAX_URL_LENGTH, OPEN, TrackedTarget
from messaging.links import BadLink

DELIVERY = UUID("01a1fe52-0000-7000-8000-000000000001")
LINK = re.compile(r"http://localhost:8000/t/c/([A-Za-z0-9_-]+)")


@pytest.fixture(autouse=True)
def _base_url(settings) -> None:
    settings.BASE_URL = "http://localhost:8000"


def clicks(html: str) -> str:
    """Rewrite, and show each token as [where it leads]."""
    changed = tracked_links.track(html, DELIVERY, opens=False, clicks=True)
    return LINK.sub(lambda found: f"[{tracked_links.read(CLICK, found[1]).url}]", changed)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<a href="https://x.example/">x</a>', '<a href="[https://x.example/]">x</a>'),
        ("<a href='http://x.example'>x</a>", '<a href="[http://x.example]">x</a>'),
        ("<a href=http://x.example>x</a>", '<a href="[http://x.example]">x</a>'),
        ("<A class=b HREF = 'HTTPS://x.example'>", '<A class=b HREF = "[HTTPS://x.example]">'),
        ('<a href="https://x.example/?a=1&amp;b=2">', '<a href="[https://x.example/?a=1&b=2]">'),
        (
            '<a href="https://x.example/list?a=1&region=eu&currency=EUR">',
            '<a href="[https://x.example/list?a=1&region=eu&currency=EUR]">',
        ),
        ("<a href=https://x.example/?a&copy=1>", '<a href="[https://x.example/?a&copy=1]">'),
        ('<a href=" https://x.example ">', '<a href="[https://x.example]">'),
        ('<a href="https://x.example/ü?q=ß">', '<a href="[https://x.example/ü?q=ß]">'),
        (
            '<a title="href=\'https://y.example\' >" href="https://x.example">',
            '<a title="href=\'https://y.example\' >" href="[https://x.example]">',
        ),
        ('<a\n href="https://x.example"\n>', '<a\n href="[https://x.example]"\n>'),
        (
            '<p><a href="https://x.example">1</a><a href="https://y.example">2</a>',
            '<p><a href="[https://x.example]">1</a><a href="[https://y.example]">2</a>',
        ),
    ],
)
def test_web_links_are_rewritten_for_tracking(html: str, expected: str) -> None:
    assert clicks(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        '<a href="mailto:a@x.example">',
        '<a href="tel:+1">',
        '<a href="javascript:alert(1)">',
        '<a href="data:text/html,x">',
        '<a href="//x.example">',
        '<a href="/relative">',
        '<a href="#top">',
        '<a href="">',
        "<a href>",
        '<a href="https://">',
        '<a href="https://[x">',
        '<a href="https://x.example/a b">',
        '<a href="https://x.example/&#10;X: y">',
        '<a href="https://x.example\\@y.example">',
        '<a href="http://localhost:8000/p/token">preferences</a>',
        '<a href="http://LOCALHOST:8000/p/u/token">unsubscribe</a>',
        '<a href="http://localhost:8000/t/c/token">',
        f'<a href="https://x.example/{"x" * MAX_URL_LENGTH}">',
        f'<a href="https://x.example/{"ü" * (MAX_URL_LENGTH // 6)}">',
        '<!-- <a href="https://x.example"> -->',
        '<!--[if mso]><a href="https://x.example"><![endif]-->',
        "<style>a:after {content: '<a href=\"https://x.example\">'}</style>",
        "<script>\"<a href='https://x.example'>\"</script>",
        '<title><a href="https://x.example"></title>',
        '<area href="https://x.example">',
        '<abbr href="https://x.example">',
        '<link href="https://x.example">',
        '<img src="https://x.example">',
        '<form action="https://x.example">',
        '<a data-href="https://x.example">',
        "plain https://x.example text",
        '<a href="https://x.example',
        "",
    ],
)
def test_other_links_stay_unchanged(html: str) -> None:
    assert tracked_links.track(html, DELIVERY, opens=False, clicks=True) == html


@pytest.mark.parametrize(
    ("html", "around"),
    [
        ("<body><p>x</p></body></html>", ("<body><p>x</p>", "</body></html>")),
        ("<BODY>x</BODY >", ("<BODY>x", "</BODY >")),
        ("<p>x</p>", ("<p>x</p>", "")),
        ("<body>İİ</body><!-- </body -->", ("<body>İİ</body><!-- ", "</body -->")),
    ],
)
def test_the_image_is_the_last_of_the_body(html: str, around: tuple[str, str]) -> None:
    changed = tracked_links.track(html, DELIVERY, opens=True, clicks=False)
    before, after = around
    assert changed.startswith(before) and changed.endswith(after)
    image = changed[len(before) : len(changed) - len(after)]
    token = re.fullmatch(
        r'<img src="http://localhost:8000/t/o/([A-Za-z0-9_-]+)" width="1" height="1" alt=""'
        r' border="0">',
        image,
    )
    assert token
    assert tracked_links.read(OPEN, token[1]) == TrackedTarget(DELIVERY)


def token(url: str = "https://x.example") -> str:
    return tracked_links.click_url(DELIVERY, url).rpartition("/")[2]


def test_no_token_can_be_changed() -> None:
    own = token()
    assert tracked_links.read(CLICK, own) == TrackedTarget(DELIVERY, "https://x.example")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for place in range(len(own) - 1):  # of the last letter some bits say nothing
        other = letters[(letters.index(own[place]) + 1) % 64]
        with pytest.raises(BadLink):
            tracked_links.read(CLICK, own[:place] + other + own[place + 1 :])


@pytest.mark.parametrize(
    "text",
    ["", "x", "A" * 43, "A" * 9000, "é" * 50, "%00" * 20, "." * 50, "A" * 44 + "=", "A" * 45],
)
def test_malformed_token_is_rejected(text: str) -> None:
    for kind in (OPEN, CLICK):
        with pytest.raises(BadLink):
            tracked_links.read(kind, text)


def test_token_is_valid_for_one_kind_only() -> None:
    with pytest.raises(BadLink):
        tracked_links.read(OPEN, token())
    image = tracked_links.open_url(DELIVERY).rpartition("/")[2]
    with pytest.raises(BadLink):
        tracked_links.read(CLICK, image)


def test_a_token_outlives_the_rotation_of_keys(settings) -> None:
    own = token()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert tracked_links.read(CLICK, own) == TrackedTarget(DELIVERY, "https://x.example")
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(BadLink):
        tracked_links.read(CLICK, own)
