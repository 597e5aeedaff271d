"""The audit: entries that nothing changes, and the values that an erasure may remove."""

from typing import Any, ClassVar

from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models.functions import Now, Upper
from django.utils.translation import gettext_lazy as _

from rme.core import ids


class AuditEntry(models.Model):
    """An entry of the audit: who did what, when, and from where.

    The database refuses to change or delete entries, so they hold nothing that an erasure must
    remove: that is in AuditValues. There are no foreign keys: entries outlive what they name.
    """

    class Action(models.TextChoices):
        ADDED = "ADDED", _("added")
        CHANGED = "CHANGED", _("changed")
        DELETED = "DELETED", _("deleted")
        PUBLISHED = "PUBLISHED", _("published")
        PUBLISH_ORDERED = "PUBLISH_ORDERED", _("scheduled publishing of")
        REVIEW_REQUESTED = "REVIEW_REQUESTED", _("requested a review of")
        APPROVED = "APPROVED", _("approved")
        ARCHIVED = "ARCHIVED", _("archived")
        PAUSED = "PAUSED", _("paused")
        DECIDED = "DECIDED", _("decided a manual review")
        CONSENT = "CONSENT", _("recorded consent")
        MERGED = "MERGED", _("merged")
        ORDERED = "ORDERED", _("started an action")
        STOPPED = "STOPPED", _("stopped an action")
        REFUSED = "REFUSED", _("refused")
        VERIFIED = "VERIFIED", _("started verification")
        TESTED = "TESTED", _("tested")
        SENT = "SENT", _("sent by hand")
        REPLAYED = "REPLAYED", _("replayed")
        IMPORTED = "IMPORTED", _("imported")
        EXPORTED = "EXPORTED", _("exported")
        READ = "READ", _("read the content of")
        ERASED = "ERASED", _("erased")
        LOGGED_IN = "LOGGED_IN", _("logged in")
        LOGIN_FAILED = "LOGIN_FAILED", _("failed to log in")
        LOCKED_OUT = "LOCKED_OUT", _("was locked out")
        LOGGED_OUT = "LOGGED_OUT", _("logged out")
        SESSIONS_ENDED = "SESSIONS_ENDED", _("ended sessions")
        FACTOR_ADDED = "FACTOR_ADDED", _("added a second factor")
        FACTOR_REMOVED = "FACTOR_REMOVED", _("removed a second factor")
        PASSWORD_CHANGED = "PASSWORD_CHANGED", _("changed the password")
        PASSWORD_RESET = "PASSWORD_RESET", _("reset the password")
        CREDENTIALS_REMOVED = "CREDENTIALS_REMOVED", _("removed all credentials")
        INVITED = "INVITED", _("invited")
        WITHDRAWN = "WITHDRAWN", _("withdrew the invitation")
        ACCEPTED = "ACCEPTED", _("accepted the invitation")
        ROLE_GRANTED = "ROLE_GRANTED", _("granted a role")
        ROLE_CHANGED = "ROLE_CHANGED", _("changed a role")
        ROLE_TAKEN = "ROLE_TAKEN", _("removed a role")
        KEY_CREATED = "KEY_CREATED", _("created a key")
        KEY_CHANGED = "KEY_CHANGED", _("changed a key")
        KEY_ROTATED = "KEY_ROTATED", _("replaced a key")
        KEY_REVOKED = "KEY_REVOKED", _("revoked a key")
        ACTING_BEGUN = "ACTING_BEGUN", _("started acting as")
        ACTING_ENDED = "ACTING_ENDED", _("stopped acting as")
        HANDED_OVER = "HANDED_OVER", _("switched to another cell as")
        CONNECTED = "CONNECTED", _("connected to an account in another cell")

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization_id = models.CharField(max_length=64, null=True)
    """None: the entry concerns the deployment, and superusers see it."""
    at = models.DateTimeField(db_default=Now())
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=150)
    """The user name as it was; empty if nobody has proven who they are."""
    acting_as_id = models.BigIntegerField(null=True)
    acting_as_name = models.CharField(max_length=150)
    action = models.CharField(max_length=24)  # without choices: a new one is no migration
    kind = models.CharField(max_length=100)
    """The model of the object, like `crm.contact`; empty if there is none."""
    object_id = models.CharField(max_length=255)
    address = models.CharField(max_length=64)
    request_id = models.CharField(max_length=64)
    user_agent = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    """The digest of the entry's values; empty if it has none."""

    class Meta:
        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["organization_id", "id"], name="audit_by_organization"),
            models.Index(fields=["organization_id", "action", "id"], name="audit_by_action"),
            models.Index(fields=["organization_id", "actor_name", "id"], name="audit_by_person"),
            models.Index(
                fields=["organization_id", "acting_as_name", "id"],
                name="audit_by_acted_as",
                condition=~models.Q(acting_as_name=""),
            ),
            models.Index(fields=["object_id", "id"], name="audit_by_object"),
            models.Index(fields=["actor_id", "id"], name="audit_by_actor"),  # "recent actions"
        ]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action_words}"

    @property
    def action_words(self) -> str:
        """Return the action in words; one of a later release as it is."""
        is_known = self.action in self.Action.values
        return str(self.Action(self.action).label) if is_known else self.action


class AuditValues(models.Model):
    """What an entry of the audit says about its object. Only an erasure deletes it."""

    entry_id = models.UUIDField(primary_key=True)
    organization_id = models.CharField(max_length=64, null=True)
    contact_id = models.CharField(max_length=64)
    """The contact whom the values describe; empty if they describe none."""
    salt = models.CharField(max_length=32)
    """Keeps values from being guessed by the digest that stays when they are erased."""
    label = models.CharField(max_length=200)
    text = models.CharField(max_length=500)
    changes = models.JSONField(default=list)
    """Shape: `[[field, before, after], …]`."""
    reason = models.CharField(max_length=500)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["organization_id", "contact_id"],
                name="audit_of_contact",
                condition=~models.Q(contact_id=""),
            ),
            models.Index(
                "organization_id",
                OpClass(Upper("label"), name="text_pattern_ops"),
                name="audit_by_label",
            ),
        ]

    def __str__(self) -> str:
        return self.label
