"""The input of quiet hours: two times of day for each channel."""

import json
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from messaging.console import wording
from messaging.domain.channels import Channel

EDGES = {"from": gettext_lazy("from"), "until": gettext_lazy("until")}
"""The names of a period's times, and what the page calls them."""


class QuietHoursInput(forms.Widget):
    """Two times for each channel. Its value is the JSON that the field stores."""

    use_fieldset = True

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: object = None
    ) -> SafeString:
        """Return the inputs, filled in with the stored or typed times."""
        periods = json.loads(value) if isinstance(value, str) and value else value
        rows = [
            (
                wording.channel(channel),
                [
                    (words, _input(name, channel, edge), _time(periods, channel, edge))
                    for edge, words in EDGES.items()
                ],
            )
            for channel in Channel
        ]
        return render_to_string("admin/rme/quiet_hours.html", {"rows": rows})

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        """Return the periods of the channels that have a time."""
        periods = {
            str(channel): {edge: data.get(_input(name, channel, edge), "") for edge in EDGES}
            for channel in Channel
        }
        return json.dumps({each: times for each, times in periods.items() if any(times.values())})

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return not any(key.startswith(f"{name}_") for key in data)


def _input(name: str, channel: Channel, edge: str) -> str:
    return f"{name}_{channel}_{edge}"


def _time(periods: Any, channel: Channel, edge: str) -> str:
    period = periods.get(channel) if isinstance(periods, dict) else None
    return str(period.get(edge, "")) if isinstance(period, dict) else ""
