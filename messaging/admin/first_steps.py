"""The checklist of a new organization: what is done, and the page where the next step is done."""

from dataclasses import dataclass

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from messaging.reports import first_steps
from messaging.reports.first_steps import Progress
from rme.tenants.access.roles import Permission, organizations_for


@dataclass(frozen=True, slots=True)
class FirstStep:
    """A step of the checklist."""

    text: str
    help: str
    done: bool
    url: str


@dataclass(frozen=True, slots=True)
class Checklist:
    """The steps of an organization."""

    name: str
    url: str
    steps: list[FirstStep]

    @property
    def done(self) -> int:
        return sum(step.done for step in self.steps)

    @property
    def next(self) -> FirstStep | None:
        """Return the first step that is not done."""
        return next((step for step in self.steps if not step.done), None)


def of(organization_id: str) -> Checklist | None:
    """Return the checklist of an organization that lacks a step; None if it is complete."""
    progress = first_steps.incomplete([organization_id])
    return _checklist(progress[0]) if progress else None


def show(request: HttpRequest, organization_id: str) -> HttpResponse:
    """Return the page of one organization's checklist. Raise Http404."""
    organizations = organizations_for(request, Permission.SEE_SETTINGS).filter(pk=organization_id)
    checklists = first_steps.read(organizations.values_list("pk", flat=True))
    if not checklists:
        raise Http404
    context = {
        **admin.site.each_context(request),
        "title": _("First steps of %(name)s") % {"name": checklists[0].name},
        "checklist": _checklist(checklists[0]),
    }
    return render(request, "admin/rme/first_steps.html", context)


def _provider_help(progress: Progress) -> str:
    """Return what the provider's step says: whether there is one, and whether it was checked."""
    if progress.provider_checked:
        return _("An account is active, and its connection was checked.")
    if progress.provider:
        return _("An account is active. Open it and check its connection.")
    if progress.simulator:
        return _("The simulator receives your messages. Add a provider to deliver them.")
    return _("Add an account of the service that delivers your email, SMS or push.")


def _checklist(progress: Progress) -> Checklist:
    def page(name: str) -> str:
        url = reverse(f"admin:{name}")
        query = "&" if "?" in url else "?"
        return f"{url}{query}organization={progress.organization_id}"

    def listed_or_new(model: str, *, exists: bool) -> str:
        return page(f"{model}_{'changelist' if exists else 'add'}")

    templates = reverse("console:templates", args=[progress.organization_id])
    organization = reverse("admin:tenants_organization_change", args=[progress.organization_id])
    steps = [
        FirstStep(
            _("Organization"), _("Name, time zone, language and region."), True, organization
        ),
        FirstStep(
            _("Sender domain"),
            _("The domain that your email comes from. A superuser verifies it."),
            progress.domain,
            reverse(
                f"console:{'domains' if progress.has_domain else 'new_domain'}",
                args=[progress.organization_id],
            ),
        ),
        FirstStep(
            _("Provider"),
            _provider_help(progress),
            progress.provider,
            reverse("console:providers", args=[progress.organization_id]),
        ),
        FirstStep(
            _("Template"),
            _("Write a template and publish it."),
            progress.template,
            templates,
        ),
        FirstStep(
            _("First message"),
            _("Press Send test to me, on the page of a template."),
            progress.delivered,
            templates,
        ),
        FirstStep(
            _("Keys for your developers"),
            _("An application for the REST API, or an API key for bots."),
            progress.keys,
            listed_or_new("tenants_application", exists=progress.keys),
        ),
    ]
    url = reverse("first_steps", args=[progress.organization_id])
    return Checklist(progress.name, url, steps)
