"""What is sent is rendered at once if that is quick, else in a process that can be killed."""

import time

import pytest

from messaging.content.outgoing import OutgoingRenderer, RendererUnavailable
from messaging.content.rendering import RenderFailed, RenderLimit
from messaging.content.templates import ActiveTemplate
from tests.messaging.content import hanging_renders
from tests.messaging.content.test_costly_steps import ENDLESS
from tests.messaging.content.test_parsing_apart import LONG

LOOPS = "{% for i in (1..n) %}{% assign x = i | times: 3 %}{% endfor %}{{ x }}"


def template(text, channel="SMS"):
    return ActiveTemplate(
        version_id=1, version=1, name="a", language="en", channel=channel, category="",
        variables={}, defaults={}, texts={"text": text}, partials=None,
    )  # fmt: skip


def rendered(renderer, text, **data):
    return renderer.render("acme", template(text), data).content.text


def test_quick_message_is_rendered_without_another_process():
    renderer = OutgoingRenderer(hanging_renders.hang)
    assert rendered(renderer, LOOPS, n=100) == "300"


def test_slow_message_is_rendered_by_another_process():
    renderer = OutgoingRenderer()
    assert rendered(renderer, LOOPS, n=1) == "3"  # parsed
    before = time.thread_time()
    assert rendered(renderer, LOOPS, n=9_000) == "27000"
    assert time.thread_time() - before < 0.3


def test_long_template_is_neither_parsed_nor_rendered_here():
    renderer = OutgoingRenderer()
    before = time.thread_time()
    assert rendered(renderer, LONG, a={"b": "c"}, d="d").startswith("DeDe")
    assert time.thread_time() - before < 0.3


@pytest.mark.parametrize(
    ("text", "error"), [(ENDLESS, RenderLimit), (LOOPS + "{{ 1 | divided_by: 0 }}", RenderFailed)]
)
def test_slow_message_that_fails_raises_its_error(text, error):
    with pytest.raises(error):
        rendered(OutgoingRenderer(), text, n=9_000)


def test_message_that_hangs_in_native_code_fails_alone(settings):
    settings.RENDER_SECONDS = 0.2
    renderer = OutgoingRenderer(hanging_renders.hang)
    for _ in range(2):
        with pytest.raises(RenderLimit, match="rendering takes too long"):
            rendered(renderer, LOOPS, n=9_000)
        assert rendered(renderer, LOOPS, n=1) == "3"


@pytest.mark.parametrize("work", [hanging_renders.die, hanging_renders.leave])
def test_message_is_not_to_blame_for_a_process_that_ends(work):
    with pytest.raises(RendererUnavailable):
        rendered(OutgoingRenderer(work), LOOPS, n=9_000)


def test_message_is_rendered_again_after_its_process_was_stopped(tmp_path, monkeypatch):
    monkeypatch.setenv("LEFT", str(tmp_path / "left"))
    renderer = OutgoingRenderer(hanging_renders.leave_once)
    assert rendered(renderer, LOOPS, n=9_000) == "27000"
    assert (tmp_path / "left").exists()


def test_message_that_needs_too_much_memory_fails_alone():
    with pytest.raises(RenderLimit, match="too much memory"):
        rendered(OutgoingRenderer(hanging_renders.fill_memory), LOOPS, n=9_000)


def test_message_is_not_to_blame_if_no_process_starts(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nonexistent")
    with pytest.raises(RendererUnavailable):
        rendered(OutgoingRenderer(), LOOPS, n=9_000)
