"""People's privacy requests, and the files that answer them."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from rme.core import ids
from rme.tenants.models import Organization


class PrivacyRequest(models.Model):
    """A person's request for a data export or an erasure (GDPR Art. 15, 17 and 20).

    It names a contact, or the address of a person who is no contact. When it has ended it keeps the
    contact id alone, or a keyed digest of the address.
    """

    class Kind(models.TextChoices):
        EXPORT = "EXPORT", _("Data export")
        ERASURE = "ERASURE", _("Erasure")

    class State(models.TextChoices):
        OPEN = "OPEN", _("Open")
        RUNNING = "RUNNING", _("Running")
        DONE = "DONE", _("Done")
        REFUSED = "REFUSED", _("Refused")

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    kind = models.CharField(max_length=8, choices=Kind.choices)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    contact_id = models.CharField(max_length=64, blank=True)
    address = models.CharField(max_length=320, blank=True)
    address_digest = models.CharField(max_length=64, blank=True)
    """By this a request by the same address is found when the address is gone."""
    note = models.CharField(max_length=500, blank=True)
    """How the person asked."""
    requested_at = models.DateTimeField()
    due_at = models.DateTimeField()
    recorded_by = models.CharField(max_length=200)
    actor = models.JSONField(default=dict)
    """Who ordered it to be carried out. Shape: the fields of `audit.Actor`."""
    reason = models.CharField(max_length=500, blank=True)
    """Why it was refused."""
    result = models.CharField(max_length=1000, blank=True)
    """What was found or erased, as numbers; or what it waits for. It names nobody."""
    erased_at = models.DateTimeField(null=True)
    """When the person was erased: what an export read before must not be kept."""
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    turn_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by consent.privacy.answers.work
            models.Index(
                fields=["turn_at"],
                condition=models.Q(state="RUNNING"),
                name="privacy_request_running",
            ),
            # read by consent.privacy.requests.overdue
            models.Index(
                fields=["organization", "due_at"],
                condition=models.Q(state__in=["OPEN", "RUNNING"]),
                name="privacy_request_due",
            ),
            # read by consent.privacy.requests.page
            models.Index(fields=["organization", "-id"], name="privacy_request_newest"),
            # read by a person's page, by erasure and by data_export
            models.Index(fields=["organization", "contact_id"], name="privacy_request_of"),
        ]

    def __str__(self) -> str:
        return gettext("%(kind)s requested on %(requested_at)s") % {
            "kind": self.get_kind_display(),
            "requested_at": f"{self.requested_at:%Y-%m-%d}",
        }

    @property
    def is_pending(self) -> bool:
        """Return whether the person still waits for the answer."""
        return self.state in (self.State.OPEN, self.State.RUNNING)


class PrivacyFile(models.Model):
    """The result of a data export: a ZIP file with JSON, which is deleted when it expires."""

    request = models.OneToOneField(
        PrivacyRequest, models.CASCADE, primary_key=True, related_name="file"
    )
    content = models.BinaryField()
    size = models.PositiveIntegerField()
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return gettext("file of %(request_id)s") % {"request_id": self.request_id}
