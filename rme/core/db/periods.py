"""Days, weeks and months in UTC: what a partition holds, and how its name says so."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum


class Period(StrEnum):
    """The length of a table's partitions, the shortest first."""

    DAY = "day"
    WEEK = "week"
    """From Monday (ISO 8601)."""
    MONTH = "month"

    @property
    def ahead(self) -> int:
        """Return how many partitions are created ahead: each makes planning a little dearer."""
        return {Period.DAY: 7, Period.WEEK: 4, Period.MONTH: 3}[self]

    def start_of(self, moment: datetime) -> datetime:
        """Return the start of the period that a moment is in."""
        day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self is Period.MONTH:
            return day.replace(day=1)
        return day - timedelta(days=day.weekday()) if self is Period.WEEK else day

    def later(self, start: datetime, count: int = 1) -> datetime:
        """Return the start of the period `count` periods after the one that starts then."""
        if self is Period.MONTH:
            index = start.year * 12 + start.month - 1 + count
            return datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC)
        return start + timedelta(days=count * (7 if self is Period.WEEK else 1))

    def suffix(self, start: datetime) -> str:
        """Return the end of a partition's name: 20310510, 2031w19 or 203105."""
        return start.strftime(_FORMATS[self])


_FORMATS = {Period.DAY: "%Y%m%d", Period.WEEK: "%Gw%V", Period.MONTH: "%Y%m"}
SUFFIX = "_([0-9]{8}|[0-9]{4}w[0-9]{2}|[0-9]{6})$"
"""The suffixes of names, as a regular expression of PostgreSQL and Python."""


def of_suffix(text: str) -> tuple[Period, datetime]:
    """Return the period and the start that a suffix stands for."""
    if "w" in text:
        return Period.WEEK, datetime.strptime(f"{text}-1", "%Gw%V-%u").replace(tzinfo=UTC)
    period = Period.DAY if len(text) == 8 else Period.MONTH
    return period, datetime.strptime(text, _FORMATS[period]).replace(tzinfo=UTC)
