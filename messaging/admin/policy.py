"""Pages for sending rules and pauses."""

import re
from typing import Any

from django import forms
from django.contrib import admin
from django.core.validators import MinValueValidator
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext

from messaging.admin.durations import DurationInput
from messaging.admin.quiet_hours import QuietHoursInput
from messaging.models import Pause, SendingRules
from messaging.policy import organization_policy, pausing
from rme.tenants.access.roles import Permission
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.admin.choices import TenantForm


class PolicyAdmin(TenantAdmin):
    """Base class of pages whose changes reset the cached policy of an organization."""

    read_permission: Permission = Permission.SEE_SETTINGS
    write_permission: Permission = Permission.OPERATE
    list_select_related: Any = ("organization",)

    def changed(self, organization_id: str) -> None:
        """Reset the cached policy. Other processes read the change within two seconds."""
        organization_policy.forget(organization_id)

    def save_model(
        self, request: HttpRequest, obj: Any, form: "ModelForm[Any]", change: bool
    ) -> None:
        super().save_model(request, obj, form, change)
        self.changed(obj.organization_id)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)
        self.changed(obj.organization_id)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        organizations = set(queryset.values_list("organization_id", flat=True))
        super().delete_queryset(request, queryset)
        for organization_id in organizations:
            self.changed(organization_id)


class SendingRulesForm(TenantForm):
    """Sending rules. Limits are at least one: pauses are there to stop sending."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if quiet_hours := self.fields.get("quiet_hours"):
            quiet_hours.widget = QuietHoursInput()
            quiet_hours.help_text = gettext(
                "In the recipient's time zone. Messages due in between wait."
            )
        for name in ("sends_per_second", "sends_per_day"):
            if name in self.fields:
                self.fields[name].validators.append(MinValueValidator(1))
        if schedule_grace := self.fields.get("schedule_grace"):
            schedule_grace.widget = DurationInput()
            schedule_grace.help_text = gettext(
                "How late a scheduled message may go after an outage. After that, marketing "
                "expires; transactional messages still go."
            )

    def clean_quiet_hours(self) -> dict[str, dict[str, str]]:
        """Check the quiet hours: for each channel two different times of day, or none."""
        periods: dict[str, dict[str, str]] = self.cleaned_data["quiet_hours"] or {}
        if not all(map(_is_period, periods.values())):
            raise forms.ValidationError(
                gettext("Choose two different times for each channel, or none.")
            )
        return periods


def _is_period(period: dict[str, str]) -> bool:
    times = list(period.values())
    return times[0] != times[1] and all(re.fullmatch(TIME, time) for time in times)


TIME = "([01][0-9]|2[0-3]):[0-5][0-9]"


@admin.register(SendingRules)
class SendingRulesAdmin(PolicyAdmin):
    write_permission: Permission = Permission.CHANGE_SETTINGS
    form = SendingRulesForm
    list_display = ("organization", "sends_per_second", "sends_per_day", "double_opt_in")


class PauseForm(TenantForm):
    """A pause. Its category must exist."""

    def clean(self) -> dict[str, Any]:
        """Check that the category exists."""
        cleaned = super().clean()
        organization, category = self.own_organization(), cleaned.get("category")
        if (
            organization
            and category
            and category not in organization_policy.of(organization.pk).categories
        ):
            self.add_error("category", gettext("This category doesn't exist."))
        return cleaned


@admin.register(Pause)
class PauseAdmin(PolicyAdmin):
    form = PauseForm
    list_display = ("__str__", "channel", "category", "template", "reason", "ends_at", "created_at")
    list_filter = ("channel",)
    search_fields = ("reason", "template", "category")

    def changed(self, organization_id: str) -> None:
        super().changed(organization_id)
        pausing.resume(organization_id)
