"""Texts from outside cost work that grows as they do, whatever stands in them.

A pattern or loop that looks at a character again for each one before it lets one caller's text
hold up everybody's. Compared is CPU time, of a text of 8n with that of eight of n.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from messaging import links
from messaging.accept import waiting
from messaging.consent import keywords
from messaging.content import tracked_links
from messaging.content.rendering import (
    Limits,
    RenderFailed,
    RenderLimit,
    TemplateSyntax,
    advise_email,
    compile_mjml,
    compile_source,
    render_email,
    segments,
)
from messaging.content.rendering.advice import RenderedEmail
from messaging.content.rendering.html.plain_text import from_html, strip_tags
from messaging.content.rendering.mjml import compiler
from messaging.pages.recipient_page import accepted_language
from messaging.providers import callbacks, mime, simulator
from messaging.providers.anymail import refusals, services
from messaging.providers.ses import ERRORS
from messaging.providers.ses import _refused as ses_refused
from push import device_tokens, endpoints
from rme.core import addresses, csv_lines
from rme.core.environment import diagnosis
from rme.core.errors import ApiError
from rme.core.provider import CallbackRequest, Sms, bounce_classes, bounces, http
from rme.core.provider.automated_clients import is_machine
from rme.core.provider.refusals import compile_row
from rme.crm import folding
from rme.crm.connectors.odoo.connector import _text_of
from rme.transport import AddressPolicy, Reply, Stage
from rme.transport.http1.results import _headers
from rme.transport.smtp.session import InvalidReply, ReplyReader
from tests.core import growth, patterns

_ID = UUID(int=1)
SIZES = (8, 1_000)
"""What n is: the first for work that doubles with each character, which 8 times 8 never ends."""


# --- patterns ------------------------------------------------------------------------------------
MADE_LATER: dict[str, list[re.Pattern[Any]]] = {
    "rme/core/provider/refusals.py: re.compile(first + later + end, re.IGNORECASE | re.DOTALL)": [
        compile_row(row) for row, _ in (*refusals.REFUSALS, *ERRORS, *bounce_classes.ENHANCED)
    ]
    + [compile_row(bounce_classes.word_row(row)) for row, _ in bounce_classes.WORDS],
    "messaging/providers/anymail/receipts.py: re.fullmatch(pattern, word)": [
        re.compile(pattern)
        for service in services.SERVICES.values()
        for pattern in (
            service.hard,
            service.soft,
            service.machine[1],
            service.unsubscribed[1],
            service.complained[1],
            service.no_complaint[1],
            service.not_sent[1],
        )
    ],
    "rme/core/environment/diagnosis.py: re.search(pattern, text, re.IGNORECASE)": [
        re.compile(pattern, re.IGNORECASE) for pattern, _ in diagnosis._REASONS
    ],
    "messaging/content/rendering/mjml/compiler.py: re.compile(f'{self.prefix}(\\\\d+)x')": [
        compiler._Placeholders("")._pattern
    ],
}
"""Patterns that only the running code has, by the call that makes them."""
FULLMATCH = frozenset(["rme/core/provider/refusals.py", "push/device_tokens.py"])
"""Modules that hold patterns in tables, for `fullmatch`."""


def every_pattern() -> list[Any]:
    return list(_every_pattern())


def _every_pattern() -> Iterator[Any]:
    for call in patterns.calls():
        found = [call.pattern] if call.pattern is not None else MADE_LATER.get(str(call))
        for number, pattern in enumerate(found or [None]):
            anchored = call.anchored or (not call.methods and call.path in FULLMATCH)
            name = f"{call.path.replace('/', '.')}:{call.source[:60]}:{number}"
            yield pytest.param(pattern, anchored, id=name)


@pytest.mark.parametrize(("pattern", "anchored"), every_pattern())
def test_pattern_on_repetitions_of_its_parts_is_linear(
    pattern: re.Pattern[Any] | None, anchored: bool
) -> None:
    assert pattern is not None, "made while running: name an example in MADE_LATER"
    uses = [pattern.match, pattern.fullmatch] if anchored else [lambda text: _all(pattern, text)]
    for head, pump, tail in patterns.killers(pattern):
        for use in uses:
            for n in SIZES:
                small, large = (
                    _as(pattern, head + pump * (size // len(pump) + 1) + tail)
                    for size in (n, n * growth.TIMES)
                )
                assert growth.ratio(use, small, large) < growth.LIMIT, (head, pump, tail, n)


_POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[\d,]*\})\+")
SAME_ON_ALL = {"rme/core/http/parsing.py", "messaging/console/studio/live.py"}
"""Their groups read nothing before they fail that would matter."""


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 keeps what the last try of such a group has read, although it failed."""
    found = {
        call.path
        for call in patterns.calls()
        if call.pattern is not None and _POSSESSIVE_GROUP.search(str(call.pattern.pattern))
    }
    assert found == SAME_ON_ALL


def _all(pattern: re.Pattern[Any], text: Any) -> None:
    for _ in pattern.finditer(text):
        pass


def _as(pattern: re.Pattern[Any], text: str) -> str | bytes:
    return text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")


@pytest.mark.parametrize(
    "pattern", [r"<[^>]*>", r"\S+@\S+", r"(a|aa)+b", r"(\w+\s?)*$", r"<a>.*?</a>", r"x*x*y"]
)
def test_superlinear_pattern_is_detected(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "HANG_SECONDS", 0.5)  # those that never end are to be found soon
    with pytest.raises(AssertionError, match="LIMIT"):
        test_pattern_on_repetitions_of_its_parts_is_linear(re.compile(pattern), anchored=False)


# --- functions -----------------------------------------------------------------------------------
_MARKUP = """
< <a <a_ <a_x <a_" <a_' <a_x=' <a_href="x"> <a_href=x>y <a>y </a> </ </a <! <!-- <!--> <![endif]
<!--[if_x]> <script <script> <style> </script_ <p_style=display:none> <div> </div> <img_ <img_alt=x>
<td> <li> <br > & &# &#9 &amp &amp; = a a= " ' { {{ {% İ ab@ @ http:// <a_href=http://x.test>
<body </body <title <textarea> ]]> <![CDATA[ <mj-style> <mj-style_inline="inline"> <mj-head> <b_"
"""
_WORDS = """
a a_ , ; " ' = @ a@ . a. - 0 + \ufdfa İ 😀 ,wait= wait= a;q= key= & % %20 \u0316\u0301 bot
invalid_ 5.1.1_ id: Mozilla/ simulator- =? =?utf-8?B? :// [ :
"""
_BLANKS = [" ", "\n", "\r", "\t\n", "\0"]
_ESCAPES = """
%2F %25 %2 % %% &#47; &#x2f; &#x2f &#0 &amp; &amp;amp; &sol; &amp;#37;2F &a \\n a. a- a.a-a~a~ ~a
%2Fa%2Ea /p/a
"""
N = 4_000
MARKUP = [unit.replace("_", " ") for unit in _MARKUP.split()] + _BLANKS
WORDS = [unit.replace("_", " ") for unit in _WORDS.split()] + [*_BLANKS, "\ud800"]
_LINKS = ["/p/a." + 43 * "b", "%2Fp%2Fa~b~" + 43 * "b", "a." + 43 * "b"]


def _render(text: str) -> object:
    return render_email(compile_source({"subject": "x", "html": "{{ a }}"}), {"a": text})


def _compile(text: str) -> object:
    return compile_source({"html": text})


def _mjml(text: str) -> object:
    return compile_mjml(f"<mjml><mj-body>{text}</mj-body></mjml>")


def _dripped(text: str) -> object:
    replies = ReplyReader()
    for byte in text.encode(errors="replace"):
        replies.add(bytes([byte]))
        replies.take()
    return None


def _lines(text: str) -> object:
    """A mail server that sends its reply line by line, and never ends it."""
    replies = ReplyReader()
    for _ in text:
        replies.add(b"250-x\r\n")
        replies.take()
    return None


def _callback(text: str) -> CallbackRequest:
    now = datetime.now(UTC)
    return CallbackRequest("https://x.test/", "POST", text, {}, text.encode(errors="replace"), now)


FUNCTIONS: dict[str, tuple[Callable[[str], object], list[str]]] = {
    "from_html": (from_html, MARKUP),
    "strip_tags": (strip_tags, MARKUP),
    "track": (lambda text: tracked_links.track(text, _ID, opens=True, clicks=True), MARKUP),
    "track a tag": (
        lambda text: tracked_links.track(f"<a {text}>", _ID, opens=True, clicks=True),
        MARKUP,
    ),
    "advise_email": (lambda text: advise_email(RenderedEmail("s", text, text)), MARKUP),
    "compile_source": (_compile, MARKUP),
    "render_email": (_render, MARKUP),
    "compile_mjml": (_mjml, MARKUP),
    "odoo's HTML": (_text_of, MARKUP),
    "preview_links": (links.preview_links, MARKUP + WORDS + _ESCAPES.split() + _LINKS),
    "segments": (segments, WORDS),
    "keywords.find": (keywords.find, WORDS),
    "simulator.named_outcome": (lambda text: simulator.named_outcome(Sms("+1", text)), WORDS),
    "addresses.email": (addresses.email, WORDS),
    "addresses.phone": (lambda text: addresses.phone(text, "DE"), WORDS),
    "addresses.redacted": (addresses.redacted, WORDS),
    "folding.account_name": (folding.account_name, WORDS),
    "is_machine": (is_machine, WORDS),
    "waiting.seconds": (waiting.seconds, WORDS),
    "Accept-Language": (accepted_language, WORDS),
    "callbacks.parameters": (lambda text: callbacks.parameters(_callback(text)), WORDS),
    "callbacks.form_pairs": (
        lambda text: callbacks.form_pairs(text.encode(errors="replace")),
        WORDS,
    ),
    "http.text_of": (http.text_of, WORDS),
    "headers of an answer": (lambda text: _headers([text.encode(errors="replace")]), WORDS),
    "csv_lines.row": (lambda text: csv_lines.row(text, ["a", "b"], ","), WORDS),
    "csv_lines.header": (lambda text: csv_lines.header(text, ["a", "b"], [], ","), WORDS),
    "csv_lines.write_rows": (lambda text: list(csv_lines.write_rows([[text]])), WORDS),
    "device_tokens.parse": (lambda text: device_tokens.parse("IOS", text), WORDS),
    "endpoints.url_error": (lambda text: endpoints.url_error(text, AddressPolicy()), WORDS),
    "an SMTP server's refusal": (lambda text: bounces.of_reply(Stage.RCPT, 550, text), WORDS),
    "a reported bounce": (bounces.of_report, WORDS),
    "ses's refusal": (
        lambda text: ses_refused(Reply(400), {"code": "BadRequest", "message": text}),
        WORDS,
    ),
    "anymail's refusal": (
        lambda text: refusals.refusal("mailgun", Reply(400, body=text.encode(errors="replace"))),
        WORDS,
    ),
    "mime.text_header": (lambda text: mime.text_header("Subject", text), WORDS),
    "mime.mailbox": (lambda text: mime.mailbox("From", text, "a@b.test"), WORDS),
    "Replies, byte by byte": (_dripped, ["250-a\r\n", "250 a\r\n", "a", "\n", "250-"]),
    "Replies, line by line": (_lines, ["a"]),
}


def _filter(use: str) -> Callable[[str], object]:
    compiled = compile_source({"subject": f"{{{{ a | {use} }}}}", "text": "x"})
    return lambda text: render_email(compiled, {"a": text}, limits=Limits(seconds=1e9))


_FILTERS = [
    *("base64_decode", "base64_encode", "base64_url_safe_decode", "base64_url_safe_encode"),
    *("capitalize", "date: '%c'", "downcase", "escape", "escape_once", "lstrip", "newline_to_br"),
    *("replace: 'a', 'b'", "replace_first: 'aa', 'b'", "replace_last: 'aa', 'b'", "remove: '<'"),
    *("rstrip", "size", "slice: 3, 9", "split: 'a'", "split: ' '", "squish", "strip", "strip_html"),
    *("strip_newlines", "truncate: 20", "truncatewords: 900", "upcase", "url_decode", "url_encode"),
]
FUNCTIONS |= {f"Liquid's {use}": (_filter(use), MARKUP + WORDS) for use in _FILTERS}
_EXPECTED = (ApiError, RenderFailed, RenderLimit, TemplateSyntax, InvalidReply, ValueError)
"""What a text may be refused with; each says what is wrong with it."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_on_hostile_text(name: str) -> None:
    function, units = FUNCTIONS[name]
    assert units

    def call(text: str) -> None:
        with suppress(*_EXPECTED):
            function(text)

    for unit in units:
        for before, after in (("", ""), ("<a ", ">"), ("", "</a>")):
            small, large = (
                before + unit * (size // len(unit) // 2 * 2) + after * (size // 9)
                for size in (N, N * growth.TIMES)
            )
            assert growth.ratio(call, small, large) < growth.LIMIT, (before, unit, after)
