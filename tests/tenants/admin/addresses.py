"""The addresses of all pages for people, from the table of routes, with rows that are there."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Model

from messaging.consent.privacy import requests
from messaging.consent.privacy.requests import NewRequest
from messaging.links import Confirmation, PreferenceLink
from messaging.models import (
    BulkAction,
    CallbackLogEntry,
    ConsentEntry,
    Message,
    PrivacyFile,
    ProviderAccount,
    SavedFilter,
    SenderDomain,
    Suppression,
    TemplateVersion,
    WebhookDelivery,
    WebhookEndpoint,
)
from rme.core import ids
from rme.core.db import clock
from rme.crm.models import Contact
from rme.tenants import audit
from rme.tenants.access import invitations
from rme.tenants.audit import Action, Actor
from rme.tenants.models import (
    AuditEntry,
    Invitation,
    Membership,
    Organization,
    RequestLogEntry,
    User,
)
from tests.routes import every_route
from tests.tenants.admin.scene import MODELS

PEOPLE = ("/admin/", "/p/", "/push-demo", "/rme/v1/docs")
"""Below these are the routes for people; all others are for programs."""
FOREIGN = frozenset({"pk", "object_id", "content_type_id", "provider_id"})
"""Parameters of routes that Django and django-allauth bring."""


def first_of(model: Any, organization_id: str) -> Any:
    """Return a row of a model: of an organization, if its rows belong to one."""
    paths = {Organization: "pk", TemplateVersion: "template__organization_id"}
    path = paths.get(model, "organization_id")
    belongs = model in paths or any(f.attname == path for f in model._meta.concrete_fields)
    rows = model._default_manager.filter(**{path: organization_id} if belongs else {})
    return rows.order_by("pk").first()


class Addresses:
    """Writes addresses with the rows of an organization in the place of parameters."""

    def __init__(self, org: Organization, author: User) -> None:
        self.org, self.author = org, author
        self.models = {f"/admin/{m._meta.app_label}/{m._meta.model_name}/": m for m in MODELS}
        ordered = {"scope": "all", "reason": "off", "started_by": "root", "user_id": author.pk}
        action = BulkAction.objects.create(
            organization=org, kind="CANCEL", targets=[], total=0, **ordered
        )
        shared = SavedFilter.objects.create(
            organization=org, user=author, name="failed", query="status=FAILED", is_shared=True
        )
        audit.record(Actor(author.pk, "root"), [audit.about(org, Action.CHANGED)])
        logged = RequestLogEntry.objects.create(
            organization_id=org.pk,
            application_id=1,
            request_id=ids.new_id(),
            method="POST",
            route="/rme/v1/messages",
            status=202,
            microseconds=900,
        )
        called_back = CallbackLogEntry.objects.create(
            organization_id=org.pk,
            account_id=1,
            verdict=CallbackLogEntry.Verdict.UNREADABLE,
            method="POST",
            size=10,
            count=1,
            at=clock.now(),
        )
        values = '[{"values": {"name": ["A", "B"]}}]'
        LogEntry.objects.create(
            user=author, object_repr="Acme", action_flag=2, change_message=values
        )
        self.values = {
            "organization_id": org.pk,
            "message_id": self._key(Message),
            "position": "0",
            "action_id": str(action.pk),
            "filter_id": str(shared.pk),
            "user_id": str(author.pk),
            "request_id": self._export(author),
            "kind": "cancel",
            "provider_kind": "smtp",
            "account_id": self._key(ProviderAccount),
            "domain_id": self._key(SenderDomain),
            "contact_id": self._key(Contact),
            "suppression_id": self._key(Suppression),
            "entry_id": self._key(ConsentEntry),
            "audited_id": self._key(AuditEntry),
            "logged_id": str(logged.pk),
            "callback_id": str(called_back.id),
            "endpoint_id": self._key(WebhookEndpoint),
            "delivery_id": self._key(WebhookDelivery),
            "membership_id": self._key(Membership),
            "invitation_id": self._key(Invitation),
        }
        self.runs: dict[str, str] = {}

    def _export(self, author: User) -> str:
        """Record a data export with its file."""
        new = NewRequest("EXPORT", address="a@b.example", note="by email")
        row = requests.open_request(self.org.pk, new, Actor(author.pk, author.username))
        expires_at = row.due_at
        PrivacyFile.objects.create(request=row, content=b"zip", size=3, expires_at=expires_at)
        return str(row.pk)

    def all(self) -> list[str]:
        """Return the addresses of all routes for people, in the order of the table."""
        found = dict.fromkeys(every_route(fill=self.fill))
        return [each for each in found if each.startswith(PEOPLE)]

    def fill(self, prefix: str, kind: str, name: str) -> str:
        """Return the value of a parameter. Raise KeyError for one that is new and not here."""
        if not prefix.startswith(PEOPLE):
            return "1"
        if name in ("object_id", "id") and prefix in self.models:
            return self._key(self.models[prefix])
        if name == "name" and "/templates/" in prefix:
            return "welcome"
        if name == "name" and "/partials/" in prefix:
            return "footer"
        if name == "run_id":
            return self._run(prefix)
        if name == "token" and prefix.endswith("/invitation/"):
            row = Invitation(organization=self.org, email="a@b.example", role="VIEWER")
            row.invited_by = self.author
            return invitations.create(row).split("/")[-2]
        if name == "token":
            link = PreferenceLink(self.org.pk, self._key(Contact), "EMAIL", "MARKETING")
            return Confirmation(link, ("MARKETING",)).token if prefix == "/p/c/" else link.token
        return "1" if name in FOREIGN else self.values[name]

    def _key(self, model: type[Model]) -> str:
        return str(first_of(model, self.org.pk).pk)

    def _run(self, prefix: str) -> str:
        """Upload a file once for each list, and return the id of its import."""
        if prefix not in self.runs:
            model = self.models[prefix.removesuffix("imports/")]
            file = SimpleUploadedFile("list.csv", b"channel,address\nEMAIL,a@b.example\n")
            pages: Any = admin.site.get_model_admin(model)
            store = pages.import_work(self.org.pk, "list.csv", "root")
            self.runs[prefix] = str(store(file=file).pk)
        return self.runs[prefix]
