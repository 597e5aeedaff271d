"""The model of an organization's platform, for records that are not embedded."""

from typing import Any

from django.db import models
from django.db.models.functions import Now

from rme.core.db.encrypted_fields import EncryptedTextField
from rme.tenants.models import Organization


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
