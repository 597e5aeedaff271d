"""Query parameters of admin lists: only declared filters and sortable columns are accepted."""

from typing import Any

from django.contrib.admin.filters import FieldListFilter
from django.contrib.admin.utils import get_fields_from_path
from django.http import HttpRequest
from unfold.views import ChangeList


class TenantList(ChangeList):
    """A list that can be ordered by its sortable columns only.

    Django uses `sortable_by` for the column headers, but orders by any column in a request.
    """

    def get_ordering_field(self, field_name: object) -> object:
        return super().get_ordering_field(field_name) if field_name in self.sortable_by else None

    @property
    def is_narrowed(self) -> bool:
        """Return whether a search or a filter chose the rows, other than the organization's."""
        return bool(self.query or self.get_filters_params().keys() - {"organization"})


def declared_lookups(page: Any, request: HttpRequest) -> set[str]:
    """Return the query parameters that a list's filters and its date hierarchy read."""
    declared: set[str] = set()
    for entry in page.get_list_filter(request):
        if callable(entry):
            declared.add(entry.parameter_name)
            continue
        path, build = entry if isinstance(entry, tuple | list) else (entry, FieldListFilter.create)
        field = get_fields_from_path(page.model, path)[-1]
        list_filter = build(field, request, {}, page.model, page, field_path=path)
        declared.update(list_filter.expected_parameters())
    if page.date_hierarchy:
        declared.update(f"{page.date_hierarchy}__{part}" for part in ("year", "month", "day"))
    return declared
