"""Rendering of messages to send: at once if quick, else in a process that can be killed.

Nearly all messages take less than a millisecond. `rendering.QUICK` counts their steps, so the
process that sends is never held up, and the same messages are quick on any machine. All others are
rendered by an errand, which the kernel kills after `RENDER_SECONDS` of CPU time, also in native
code. Then the message fails alone, and the next errand gets a new process.

What other people see (previews, dry runs, stored messages) is rendered by `costly_steps`.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from django.conf import settings

from messaging.content import rendering
from messaging.content.templates import ActiveTemplate, to_render
from rme.core.process.admission import Budget
from rme.core.process.errands import Errands, Killed, Overrun

TOO_LONG, TOO_LARGE = "rendering takes too long", "rendering takes too much memory"
CLOCK_SECONDS = 15.0
"""How long a process apart may take by the clock: what was sent before is recorded after it."""

Rendered = rendering.RenderedVersion | rendering.Failure


class RendererUnavailable(Exception):
    """The machine can't run the process that renders. No message is to blame."""


class OutgoingRenderer:
    """Renders messages for a process that sends, which has one."""

    def __init__(
        self,
        render_apart: Callable[
            [Sequence[rendering.VersionToRender]], Sequence[Rendered]
        ] = rendering.render_versions,
    ) -> None:
        """Start no process yet. `render_apart` is what errands do."""
        self._render_apart = render_apart
        # Nobody waits for a message as for a page, so no organization has a budget.
        self._errands = Errands(
            Budget(rate=1.0, burst=math.inf), processes=1, wall_limit=CLOCK_SECONDS
        )

    def render(
        self, organization_id: str, template: ActiveTemplate, data: Mapping[str, object]
    ) -> rendering.RenderedVersion:
        """Render a template. Raises TemplateSyntax, RenderFailed, RenderLimit, and
        RendererUnavailable.
        """
        if template.is_parsed_quickly:
            try:
                return rendering.render(template.channel, template.compiled, data, rendering.QUICK)
            except rendering.RenderLimit:
                pass  # its own limits are wider
        return self._render(organization_id, to_render(template, data))

    def _render(
        self, organization_id: str, version: rendering.VersionToRender
    ) -> rendering.RenderedVersion:
        try:
            rendered = self._render_once(organization_id, version)
        except Killed:  # its process was of the release before, or stopped by somebody
            rendered = self._render_again(organization_id, version)
        if isinstance(rendered, Exception):
            raise rendered
        return rendered

    def _render_again(self, organization_id: str, version: rendering.VersionToRender) -> Rendered:
        try:
            return self._render_once(organization_id, version)
        except Killed:
            raise RendererUnavailable from None

    def _render_once(self, organization_id: str, version: rendering.VersionToRender) -> Rendered:
        try:
            (rendered,) = self._errands.run(
                organization_id, settings.RENDER_SECONDS, self._render_apart, [version]
            )
        except Killed:
            raise
        except Overrun:
            raise rendering.RenderLimit(TOO_LONG) from None
        except MemoryError:  # of the process apart, whose memory is limited
            raise rendering.RenderLimit(TOO_LARGE) from None
        except OSError as error:
            raise RendererUnavailable from error
        return rendered
