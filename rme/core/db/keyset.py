"""Pages by keyset, newest first: the key of a page's last row is where the next page begins."""

from typing import Any, Generic, NamedTuple, TypeVar

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)


class Page(NamedTuple, Generic[M]):
    """Rows, and the key after which the next page begins; None on the last."""

    rows: list[M]
    following: Any


def page(
    rows: QuerySet[M],
    condition: Q | None = None,
    *,
    limit: int,
    before: object = None,
    key: str = "pk",
    scanned: int | None = None,
) -> Page[M]:
    """Return a page of the rows that meet a condition, by one query.

    Where no index has the condition, a page looks at `scanned` rows, by another query, and may have
    fewer than `limit`: the next page begins behind them.
    """
    if before is not None:
        rows = rows.filter(**{f"{key}__lt": before})
    ordered = rows.order_by(f"-{key}")
    border = None
    if scanned:
        border = ordered.values_list(key, flat=True)[scanned - 1 : scanned].first()
        if border is not None:
            ordered = ordered.filter(**{f"{key}__gte": border})
    matching = list((ordered.filter(condition) if condition else ordered)[: limit + 1])
    last = getattr(matching[limit - 1], key) if len(matching) > limit else border
    return Page(matching[:limit], last)
