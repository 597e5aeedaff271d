"""The platform of an organization, and the records of the embedded one."""

from typing import Any, ClassVar

from django.contrib.postgres.indexes import GinIndex
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Lower, Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from rme.core import addresses, ids
from rme.core.db.encrypted_fields import EncryptedTextField
from rme.core.zones import validate_zone
from rme.crm.fields import FoldedNameField
from rme.crm.words import ContactWords
from rme.tenants.models import FileImport, FilePart, Organization
from rme.tenants.organizations.languages import is_language


class Platform(models.Model):
    """An organization's platform and its credentials. Without one, its records are embedded."""

    organization = models.OneToOneField(
        Organization, models.CASCADE, primary_key=True, related_name="platform"
    )
    kind = models.CharField(max_length=32, default="embedded")
    credentials = EncryptedTextField(blank=True, editable=False)
    mapping: Any = models.JSONField(default=dict, blank=True, editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"{self.organization}: {self.kind}"


class Record(models.Model):
    """Base of all records: an id that sorts by time, and the organization."""

    id = models.UUIDField(primary_key=True, default=ids.new_id, editable=False)
    organization = models.ForeignKey(Organization, models.CASCADE)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        abstract = True


class Account(Record):
    """A company or household to which contacts belong."""

    name = models.CharField(max_length=255)
    name_folded = FoldedNameField()
    phone = models.CharField(max_length=40, blank=True)
    website = models.URLField(blank=True)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by the bot's Confirm_Account and Create_Account
            models.Index(fields=["organization", "name_folded"], name="account_by_name")
        ]

    def __str__(self) -> str:
        return self.name


class Contact(Record):
    """A person. `email` is stored as typed; look-ups compare `email_folded`."""

    account = models.ForeignKey(Account, models.SET_NULL, null=True, blank=True)
    first_name = models.CharField(max_length=255, blank=True)
    last_name = models.CharField(max_length=255)
    email = models.CharField(max_length=254, blank=True)
    email_folded = models.GeneratedField(
        expression=Lower("email"), output_field=models.CharField(max_length=254), db_persist=True
    )
    phone = models.CharField(max_length=20, blank=True, help_text=_("As E.164: +41446681800."))
    mobile = models.CharField(max_length=20, blank=True, help_text=_("As E.164: +41791234567."))
    language = models.CharField(max_length=16, blank=True, help_text=_("Like en_GB."))
    zone = models.CharField(max_length=64, blank=True, validators=[validate_zone])

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by the bot's Confirm_Contact, and from its beginning by people.suggest
            models.Index(
                fields=["organization", "email_folded"],
                opclasses=["varchar_ops", "varchar_pattern_ops"],
                name="contact_by_email_start",
            ),
            # read by the bot's Confirm_Contact_Phone
            models.Index(
                fields=["organization", "phone"],
                condition=~models.Q(phone=""),
                name="contact_by_phone",
            ),
            models.Index(
                fields=["organization", "mobile"],
                condition=~models.Q(mobile=""),
                name="contact_by_mobile",
            ),
            # read by people.find and people.suggest
            GinIndex(ContactWords(), name="contact_by_words"),
            # read by the console's list; by the key alone it would pass others' newer contacts
            models.Index(fields=["organization", "id"], name="contact_by_organization"),
        ]

    def __str__(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()

    @property
    def contact_id(self) -> str:
        """Return the id of the person whom the row describes, as rows about people have it."""
        return str(self.pk)

    def clean(self) -> None:
        """Check language and email, and convert phones to E.164. Raise ValidationError."""
        errors: dict[str, str] = {}
        if self.language and not is_language(self.language):
            errors["language"] = gettext(
                "This language or country doesn't exist. Use a code like en_GB or de."
            )
        if self.email:
            typed_email = addresses.typed_email(self.email)
            if typed_email is None:
                errors["email"] = gettext("This is not an email address.")
            self.email = typed_email or self.email
        for name in ("phone", "mobile"):
            typed = getattr(self, name)
            region = self.organization.region
            number = addresses.valid_phone(typed, region) if typed else ""
            if number is None and len(addresses.phone_readings(typed, region)) > 1:
                errors[name] = f"This {addresses.phone_problem(typed, region)}."
            elif number is None:
                errors[name] = gettext(
                    "This is not a phone number of %(region)s: a number of another country begins "
                    "with its code, like +41."
                ) % {"region": region}
            else:
                setattr(self, name, number)
        if errors:
            raise ValidationError(errors)


class Case(Record):
    """A support request."""

    class Status(models.TextChoices):
        NEW = "New", _("New")
        WORKING = "Working", _("Working")
        CLOSED = "Closed", _("Closed")

    number = models.CharField(max_length=20)
    subject = models.CharField(max_length=255)
    issue = models.TextField(max_length=32_000)
    status = models.CharField(max_length=20, choices=Status.choices, default=Status.NEW)
    priority = models.CharField(max_length=20, default="Medium")
    contact = models.ForeignKey(Contact, models.SET_NULL, null=True, blank=True)
    account = models.ForeignKey(Account, models.SET_NULL, null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["organization", "number"], name="case_number_once")
        ]

    def __str__(self) -> str:
        return f"{self.number}: {self.subject}"


class CaseComment(Record):
    """A comment of the organization's staff on a case; bots do not see it."""

    case = models.ForeignKey(Case, models.CASCADE, related_name="comments")
    text = models.TextField(max_length=32_000)
    author = models.CharField(max_length=150, blank=True, editable=False)

    def __str__(self) -> str:
        return f"{self.author or gettext('Comment')}, {self.created_at:%Y-%m-%d %H:%M}"


class Event(Record):
    """An event for which people register."""

    name = models.CharField(max_length=255)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class EventRegistration(Record):
    """One person's registration for an event."""

    NOT_REGISTERED = ("cancelled", "canceled", "declined", "refunded", "waitlisted")
    """Statuses, in lower case, that mean no place at the event."""

    event = models.ForeignKey(Event, models.CASCADE)
    contact = models.ForeignKey(Contact, models.SET_NULL, null=True, blank=True)
    name = models.CharField(max_length=255)
    email = models.CharField(max_length=254)
    email_folded = models.GeneratedField(
        expression=Lower("email"), output_field=models.CharField(max_length=254), db_persist=True
    )
    status = models.CharField(max_length=40, default="Registered")
    ticket_type = models.CharField(max_length=100, blank=True)
    attended = models.BooleanField(default=False)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by the bot's Confirm_Registration
            models.Index(fields=["organization", "email_folded"], name="registration_by_email")
        ]

    def __str__(self) -> str:
        return gettext("%(name)s at %(event)s") % {"name": self.name, "event": self.event}

    def clean(self) -> None:
        """Check the email address, and remove invisible characters. Raise ValidationError."""
        if self.email:
            typed = addresses.typed_email(self.email)
            if typed is None:
                raise ValidationError({"email": gettext("This is not an email address.")})
            self.email = typed


class Speaker(Record):
    """A contact who speaks at an event."""

    event = models.ForeignKey(Event, models.CASCADE)
    contact = models.ForeignKey(Contact, models.CASCADE)
    session_title = models.CharField(max_length=255, blank=True)
    session_start = models.DateTimeField(null=True, blank=True)
    room = models.CharField(max_length=100, blank=True)
    status = models.CharField(max_length=40, default="Confirmed")

    def __str__(self) -> str:
        return gettext("%(contact)s at %(event)s") % {"contact": self.contact, "event": self.event}


class Exhibitor(Record):
    """An account with a booth at an event, and its contact there."""

    event = models.ForeignKey(Event, models.CASCADE)
    account = models.ForeignKey(Account, models.SET_NULL, null=True, blank=True)
    contact = models.ForeignKey(Contact, models.SET_NULL, null=True, blank=True)
    booth = models.CharField(max_length=40, blank=True)
    level = models.CharField(max_length=40, blank=True)
    status = models.CharField(max_length=40, default="Confirmed")

    def __str__(self) -> str:
        return gettext("%(value)s at %(event)s") % {
            "value": self.account or self.contact,
            "event": self.event,
        }


class RecordImport(FileImport):
    """An import of a file of records of one kind."""

    line_limit: ClassVar[int] = 256 * 1024
    """Twice the longest case."""

    kind = models.CharField(max_length=40)
    by_email = models.BooleanField(default=False, db_default=False)
    """A row without an id changes the contact that has its email, if there is one."""

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by rme.tenants.imports.import_next_part
            models.Index(
                fields=["turn_at"],
                condition=models.Q(state="RUNNING"),
                name="record_import_running",
            )
        ]


class RecordImportPart(FilePart):
    """Some lines of such a file."""

    run = models.ForeignKey(RecordImport, models.CASCADE, related_name="parts", db_index=False)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # read by rme.tenants.imports.import_part_of, in this order
            models.UniqueConstraint(fields=["run", "number"], name="record_import_part_once")
        ]
