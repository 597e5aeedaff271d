"""The consent ledger, and the suppression list with its imports."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from messaging.models.choices import ANY_CHANNEL_CHOICES, CHANNEL_CHOICES
from rme.core import ids
from rme.tenants.models import FileImport, FilePart, Organization


class ConsentEntry(models.Model):
    """One entry of the consent ledger. Entries are never deleted, and only erasure updates them.

    `previous` is the digest of the organization's entry before, and `digest` covers this entry and
    `previous`, so that a change to any entry is detected (`consent.ledger`).
    """

    class Status(models.TextChoices):
        OPTED_IN = "OPTED_IN", _("Opted in")
        OPTED_OUT = "OPTED_OUT", _("Opted out")

    class Source(models.TextChoices):
        API = "API"
        ADMIN = "ADMIN"
        PREFERENCE_PAGE = "PREFERENCE_PAGE"
        ONE_CLICK = "ONE_CLICK"
        SMS_KEYWORD = "SMS_KEYWORD"
        IMPORT = "IMPORT"
        DOUBLE_OPT_IN = "DOUBLE_OPT_IN"

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    contact_id = models.CharField(max_length=64)
    channel = models.CharField(max_length=10, choices=ANY_CHANNEL_CHOICES)
    category = models.CharField(max_length=64, help_text=_("A category's name, or ALL."))
    status = models.CharField(max_length=10, choices=Status.choices)
    source = models.CharField(max_length=16, choices=Source.choices)
    evidence = models.JSONField(default=dict, blank=True)
    occurred_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now(), editable=False)
    recorded_by = models.CharField(max_length=200, blank=True, editable=False)
    previous = models.CharField(max_length=64, editable=False)
    digest = models.CharField(max_length=64, editable=False)

    class Meta:
        verbose_name_plural = _("consent entries")
        indexes: ClassVar[list[Any]] = [
            # read by store.gates.current_consent when accepting and before sending
            models.Index(
                fields=["organization", "contact_id", "channel", "category", "-occurred_at"],
                name="consent_of_contact",
            ),
            # read by consent.ledger.record, which continues the chain
            models.Index(fields=["organization", "-id"], name="consent_chain"),
        ]

    def __str__(self) -> str:
        words = self.status.replace("_", " ").capitalize()
        return gettext("%(words)s: %(channel)s/%(category)s, contact %(contact_id)s") % {
            "words": words,
            "channel": self.channel,
            "category": self.category,
            "contact_id": self.contact_id,
        }


class AddressOptOut(models.Model):
    """A recipient's objection, by the address that the mail or SMS went to.

    It applies to every contact with the address, including later ones, until that contact opts in
    again. The ledger has the same objection for the contact that got the message.
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE, db_index=False)
    address = models.CharField(max_length=320)
    """In its normal form."""
    channel = models.CharField(max_length=10, choices=CHANNEL_CHOICES)
    category = models.CharField(max_length=64)
    """A category's name, or ALL."""
    occurred_at = models.DateTimeField()
    entry = models.UUIDField()
    """The entry of the ledger."""

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # read by store.gates.address_opt_outs when accepting and before sending
            models.UniqueConstraint(
                fields=["organization", "address", "channel", "category"],
                name="address_opt_out_once",
            )
        ]

    def __str__(self) -> str:
        return gettext("%(address)s OPTED_OUT %(channel)s/%(category)s") % {
            "address": self.address,
            "channel": self.channel,
            "category": self.category,
        }


class Suppression(models.Model):
    """An address or a contact that must not be written to on a channel."""

    class Reason(models.TextChoices):
        HARD_BOUNCE = "HARD_BOUNCE", _("Hard bounce")
        COMPLAINT = "COMPLAINT", _("Complaint")
        STOP = "STOP", _("STOP by SMS")
        UNSUBSCRIBE = "UNSUBSCRIBE", _("Unsubscribed")
        INVALID_ADDRESS = "INVALID_ADDRESS", _("Invalid address")
        MANUAL = "MANUAL", _("Manual")

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    channel = models.CharField(max_length=10, choices=ANY_CHANNEL_CHOICES)
    address = models.CharField(max_length=320, blank=True)
    contact_id = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=16, choices=Reason.choices)
    note = models.CharField(max_length=500, blank=True)
    source = models.CharField(max_length=16, default="ADMIN", editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # both are read by store.gates.active_suppressions when accepting and before sending
            models.UniqueConstraint(
                fields=["organization", "address", "channel"],
                condition=~models.Q(address=""),
                name="suppressed_address_once",
            ),
            models.UniqueConstraint(
                fields=["organization", "contact_id", "channel"],
                condition=~models.Q(contact_id=""),
                name="suppressed_contact_once",
            ),
            models.CheckConstraint(
                condition=(models.Q(address="") & ~models.Q(contact_id=""))
                | (~models.Q(address="") & models.Q(contact_id="")),
                name="suppression_names_one",
            ),
        ]

    def __str__(self) -> str:
        return gettext("%(value)s on %(channel)s: %(reason)s") % {
            "value": self.address or self.contact_id,
            "channel": self.channel,
            "reason": self.reason,
        }


class ConsentEntryInTest(models.Model):
    """A decision that a TEST application recorded, in the layer above the live ones.

    The TEST layer has its own tables, so that LIVE code can't read it by mistake: only sends of
    TEST applications read both. Its entries prove nothing, so they form no chain.
    """

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    contact_id = models.CharField(max_length=64)
    channel = models.CharField(max_length=10, choices=ANY_CHANNEL_CHOICES)
    category = models.CharField(max_length=64)
    status = models.CharField(max_length=10, choices=ConsentEntry.Status.choices)
    source = models.CharField(max_length=16, choices=ConsentEntry.Source.choices)
    evidence = models.JSONField(default=dict)
    occurred_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now(), editable=False)
    recorded_by = models.CharField(max_length=200, blank=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by store.gates.current_consent for sends of TEST applications
            models.Index(
                fields=["organization", "contact_id", "channel", "category", "-occurred_at"],
                name="test_consent_of_contact",
            ),
            # read by consent.entries.page
            models.Index(fields=["organization", "-id"], name="test_consent_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.contact_id} {self.status} {self.channel}/{self.category} (test)"


class SuppressionInTest(models.Model):
    """A suppression in the TEST layer, with the columns of `Suppression`."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    channel = models.CharField(max_length=10, choices=ANY_CHANNEL_CHOICES)
    address = models.CharField(max_length=320, blank=True)
    contact_id = models.CharField(max_length=64, blank=True)
    reason = models.CharField(max_length=16, choices=Suppression.Reason.choices)
    note = models.CharField(max_length=500, blank=True)
    source = models.CharField(max_length=16, default="API", editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # both are read by store.gates.active_suppressions for sends of TEST applications
            models.UniqueConstraint(
                fields=["organization", "address", "channel"],
                condition=~models.Q(address=""),
                name="test_suppressed_address_once",
            ),
            models.UniqueConstraint(
                fields=["organization", "contact_id", "channel"],
                condition=~models.Q(contact_id=""),
                name="test_suppressed_contact_once",
            ),
        ]

    def __str__(self) -> str:
        return gettext("%(value)s on %(channel)s: %(reason)s (test)") % {
            "value": self.address or self.contact_id,
            "channel": self.channel,
            "reason": self.reason,
        }


class SuppressionImport(FileImport):
    """One imported file, in parts, so that any worker can continue after another.

    `unchanged` rows were already listed with a reason as strong.
    """

    line_limit: ClassVar[int] = 16 * 1024
    """Several times the longest entry."""

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by rme.tenants.imports.import_next_part
            models.Index(
                fields=["turn_at"],
                condition=models.Q(state="RUNNING"),
                name="suppression_import_running",
            ),
        ]


class SuppressionImportPart(FilePart):
    """Some lines of an imported file."""

    run = models.ForeignKey(SuppressionImport, models.CASCADE, related_name="parts", db_index=False)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # read by rme.tenants.imports.import_part_of, in this order
            models.UniqueConstraint(fields=["run", "number"], name="suppression_import_part_once")
        ]


class LedgerCheck(models.Model):
    """A verification of an organization's consent ledger, and how far it is."""

    class State(models.TextChoices):
        RUNNING = "RUNNING", _("Running")
        DONE = "DONE", _("Done")

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    total = models.PositiveIntegerField()
    """The entries there were when it began."""
    entries = models.PositiveIntegerField(default=0)
    """The entries that fit; those of erased people are among them."""
    erased = models.PositiveIntegerField(default=0)
    head = models.CharField(max_length=64, default="")
    last = models.UUIDField(null=True)
    """The last entry that fits, and its digest is `head`."""
    broken = models.UUIDField(null=True)
    """The first entry that does not fit."""
    missing = models.UUIDField(null=True)
    """The entry at which the verification before ended, if it is no longer there."""
    started_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    turn_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by consent.chain.checks.work
            models.Index(
                fields=["turn_at"],
                condition=models.Q(state="RUNNING"),
                name="ledger_check_running",
            ),
            # read by consent.chain.checks.newest
            models.Index(fields=["organization", "-id"], name="ledger_check_newest"),
        ]

    def __str__(self) -> str:
        return gettext("verification of %(created_at)s") % {
            "created_at": f"{self.created_at:%Y-%m-%d}"
        }

    @property
    def holds(self) -> bool:
        """Return whether nothing was found to be changed or removed."""
        return self.broken is None and self.missing is None

    @property
    def percent(self) -> int:
        """Return the share of the entries that were verified."""
        return min(100, 100 * self.entries // self.total) if self.total else 100
