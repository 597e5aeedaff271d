"""Publishing: a version is made active, now or at a time, where necessary after a review.

A version needs the consent of a person who wrote none of it if the organization's rules say so.
One that was active before has had it, so rolling back never waits.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_noop

from messaging.content import drafts, templates
from messaging.content.rendering import TemplateProblem
from messaging.models import Template, TemplateVersion, Version
from messaging.policy import organization_policy
from rme.core import errors
from rme.core.db import clock
from rme.tenants import audit, organizations
from rme.tenants.audit import Action, Actor

DUE = 200
"""The most versions that one run publishes."""
AUTHOR = gettext_noop("Someone who didn't write this version must approve it.")
COMMITTED = gettext_noop(
    "This template sends messages, or soon will. Ask somebody who may publish templates "
    "to change its category."
)
Problems = Sequence[TemplateProblem]


def review_is_required(organization_id: str) -> bool:
    """Return whether an organization wants a second person to look at each version."""
    return organization_policy.of(organization_id).sending.review_templates


def is_free(version: Version, by: Actor) -> bool:
    """Return whether a person may publish a version as far as its review is concerned."""
    if version.activated_at or version.approved_by:
        return True
    if not review_is_required(version.organization_id):
        return True
    return may_review(version, by)


def may_review(version: Version, by: Actor) -> bool:
    """Return whether a person has written nothing of a version; a program reviews nothing."""
    return by.user_id is not None and by.user_id not in version.authors


def publish(version: TemplateVersion, by: Actor) -> None:
    """Make a version active.

    Raise InvalidPayload if it does not parse or waits for a review, and DraftChanged.
    """
    with transaction.atomic():
        drafts.lock([version])
        require_review(version, by)
        templates.activate(version)


def publish_all(versions: Sequence[TemplateVersion], by: Actor) -> None:
    """Make versions of different templates active: all of them, or none.

    Raise InvalidPayload if one does not parse or waits for a review, and DraftChanged.
    """
    with transaction.atomic():
        drafts.lock(versions)
        for version in versions:
            require_review(version, by)
        problems = templates.activate_many(versions)
        if problems:
            details = [
                errors.Detail(f"{version.template.language} {problem.field}", problem.message)
                for version in versions
                for problem in problems.get(version.pk, ())
            ]
            raise errors.InvalidPayload(gettext("The template does not parse."), details=details)


def publish_at(version: TemplateVersion, by: Actor, at: datetime) -> None:
    """Order a version to be made active at a time. Raise InvalidPayload, DraftChanged."""
    if at <= clock.now():
        raise errors.InvalidPayload.at("at", gettext("The time has passed."))
    with transaction.atomic():
        drafts.lock([version])
        require_review(version, by)
        _update([version], publish_at=at, publish_by=by.name[:150], publish_by_id=by.user_id)


def end_order(version: TemplateVersion) -> None:
    """Forget the time at which a version was to be made active."""
    _update([version], publish_at=None, publish_by="", publish_by_id=None, publish_problem="")


def request_review(versions: Sequence[Version], by: Actor) -> None:
    """Ask others to look at drafts."""
    _update(versions, review_by=by.name[:150])


def approve(versions: Sequence[Version], by: Actor) -> None:
    """Approve drafts. Raise InvalidPayload if the person has written some of one; DraftChanged."""
    with transaction.atomic():
        drafts.lock(versions)
        if not all(may_review(each, by) for each in versions):
            raise errors.InvalidPayload.at("review", gettext(AUTHOR))
        _update(versions, approved_by=by.name[:150])


def archive(template: Template) -> None:
    """Archive a template: its active version ends, so nothing more is sent by it."""
    with transaction.atomic():
        locked = Template.objects.select_for_update().get(pk=template.pk)
        locked.versions.filter(state=TemplateVersion.State.ACTIVE).update(
            state=TemplateVersion.State.ARCHIVED
        )
        locked.versions.filter(publish_at__isnull=False).update(publish_at=None)
        Template.objects.filter(pk=template.pk).update(archived_at=Now())
    templates.forget(template)


def change_category(template: Template, category: str, *, may_publish: bool) -> None:
    """Move a template to another category, which messages accepted from now on have.

    Raise InvalidPayload if it sends, or will without another review, unless the person may publish.
    """
    committed = Q(state=TemplateVersion.State.ACTIVE) | Q(publish_at__isnull=False)
    with transaction.atomic():
        locked = Template.objects.select_for_update().get(pk=template.pk)
        if not may_publish and locked.versions.filter(committed | ~Q(approved_by="")).exists():
            raise errors.InvalidPayload.at("category", gettext(COMMITTED))
        Template.objects.filter(pk=template.pk).update(category=category)
    templates.forget(template)


def publish_due() -> int:
    """Make versions active whose time has come; return how many were tried.

    The number of statements does not depend on how many there are, nor on whose they are.
    """
    with transaction.atomic():
        rows = TemplateVersion.objects.filter(
            organizations.served("template__organization_id"),
            publish_at__lte=Now(),
            state=TemplateVersion.State.DRAFT,
        )
        due = list(
            rows.select_related("template")
            .select_for_update(of=("self",), skip_locked=True)
            .order_by("publish_at", "pk")[:DUE]
        )
        last = {each.template_id: each for each in due}  # the later one of two of one template
        ready = [version for version in last.values() if is_free(version, _who_ordered(version))]
        problems = templates.activate_many(ready, in_worker=True)
        for version in due:
            version.publish_problem = _problem(version, ready, problems)
            version.publish_at = None
        TemplateVersion.objects.bulk_update(due, ["publish_problem", "publish_at"])
        for name in sorted({version.publish_by for version in ready}):
            mine = [each for each in ready if each.publish_by == name and not problems.get(each.pk)]
            _record(mine)
    return len(due)


def _record(versions: Sequence[TemplateVersion]) -> None:
    """Record in the audit that versions were made active, in the name of who ordered it."""
    if versions:
        entries = [
            audit.about(
                each, Action.PUBLISHED, each.template.organization_id, text="at the time ordered"
            )
            for each in versions
        ]
        audit.record(_who_ordered(versions[0]), entries)


def _problem(
    version: TemplateVersion, ready: Sequence[TemplateVersion], problems: Mapping[int, Problems]
) -> str:
    if its_problems := problems.get(version.pk):
        first = its_problems[0]
        return f"{first.field}, line {first.line}: {first.message}"[:500]
    return (
        ""
        if version in ready
        else gettext("It waited for a review, or a later version was due too.")
    )


def _who_ordered(version: TemplateVersion) -> Actor:
    return Actor(version.publish_by_id, version.publish_by)


def require_review(version: Version, by: Actor) -> None:
    """Raise InvalidPayload if a version waits for a review that this person cannot give."""
    if not is_free(version, by):
        raise errors.InvalidPayload.at("review", gettext(AUTHOR))


def _update(versions: Sequence[Version], **values: object) -> None:
    for model in {type(version) for version in versions}:
        model._default_manager.filter(
            pk__in=[version.pk for version in versions], state=Version.State.DRAFT
        ).update(**values)
    for version in versions:
        for name, value in values.items():
            setattr(version, name, value)
