"""The audit: entries that nothing changes, and the values that an erasure may remove."""

from typing import Any, ClassVar

from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models.functions import Now, Upper

from rme.core import ids


class AuditEntry(models.Model):
    """An entry of the audit: who did what, when, and from where.

    The database refuses to change or delete entries, so they hold nothing that an erasure must
    remove: that is in AuditValues. There are no foreign keys: entries outlive what they name.
    """

    class Action(models.TextChoices):
        ADDED = "ADDED", "added"
        CHANGED = "CHANGED", "changed"
        DELETED = "DELETED", "deleted"
        PUBLISHED = "PUBLISHED", "made active"
        PUBLISH_ORDERED = "PUBLISH_ORDERED", "ordered to make active"
        REVIEW_REQUESTED = "REVIEW_REQUESTED", "asked for a review of"
        APPROVED = "APPROVED", "approved"
        ARCHIVED = "ARCHIVED", "archived"
        PAUSED = "PAUSED", "paused"
        DECIDED = "DECIDED", "decided in manual review"
        CONSENT = "CONSENT", "recorded consent"
        MERGED = "MERGED", "merged"
        ORDERED = "ORDERED", "ordered an action"
        STOPPED = "STOPPED", "stopped an action"
        REFUSED = "REFUSED", "refused"
        VERIFIED = "VERIFIED", "ordered to verify"
        TESTED = "TESTED", "tested"
        SENT = "SENT", "sent by hand"
        REPLAYED = "REPLAYED", "replayed"
        IMPORTED = "IMPORTED", "import"
        EXPORTED = "EXPORTED", "exported"
        READ = "READ", "read the content of"
        ERASED = "ERASED", "erased"
        LOGGED_IN = "LOGGED_IN", "logged in"
        LOGIN_FAILED = "LOGIN_FAILED", "failed to log in"
        LOCKED_OUT = "LOCKED_OUT", "was locked out"
        LOGGED_OUT = "LOGGED_OUT", "logged out"
        SESSIONS_ENDED = "SESSIONS_ENDED", "ended sessions"
        FACTOR_ADDED = "FACTOR_ADDED", "added a second factor"
        FACTOR_REMOVED = "FACTOR_REMOVED", "removed a second factor"
        PASSWORD_CHANGED = "PASSWORD_CHANGED", "changed the password"
        PASSWORD_RESET = "PASSWORD_RESET", "reset the password"
        CREDENTIALS_REMOVED = "CREDENTIALS_REMOVED", "removed password, sessions and factors"
        INVITED = "INVITED", "invited"
        WITHDRAWN = "WITHDRAWN", "withdrew the invitation"
        ACCEPTED = "ACCEPTED", "accepted the invitation"
        ROLE_GRANTED = "ROLE_GRANTED", "granted a role"
        ROLE_CHANGED = "ROLE_CHANGED", "changed a role"
        ROLE_TAKEN = "ROLE_TAKEN", "took a role away"
        KEY_CREATED = "KEY_CREATED", "created a key"
        KEY_CHANGED = "KEY_CHANGED", "changed a key"
        KEY_ROTATED = "KEY_ROTATED", "replaced a key"
        KEY_REVOKED = "KEY_REVOKED", "revoked a key"
        ACTING_BEGUN = "ACTING_BEGUN", "began to act as"
        ACTING_ENDED = "ACTING_ENDED", "ceased to act as"
        HANDED_OVER = "HANDED_OVER", "went to another cell as"
        CONNECTED = "CONNECTED", "connected with an account of another cell"

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
        return self.Action(self.action).label if is_known else self.action


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
