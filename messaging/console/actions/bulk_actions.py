"""Actions on deliveries and suppressions that a person ordered: started once, done in slices.

Each slice calls what REST calls (cancel, accept) or the manual review's decision, then stores its
progress. A worker that is killed in between leaves a slice that is done again: a cancel finds
nothing to cancel, a message that was accepted again answers by its idempotency key, and a decision
has left an event.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_noop
from pydantic.alias_generators import to_camel

from messaging.accept import Submission, accept_bulk, cancel, results
from messaging.accept.idempotency import CallerKey, digest
from messaging.accept.requests import MESSAGE
from messaging.consent import gate_lock, suppressions
from messaging.console import access
from messaging.console.access import Viewer, note
from messaging.delivery import manual_review
from messaging.delivery.manual_review import Decision
from messaging.domain.contents import ContentBody, Sender
from messaging.domain.planning import ChannelDecision
from messaging.domain.statuses import Status
from messaging.models import BulkAction, Delivery, Event, Message, Suppression
from messaging.policy import organization_policy
from messaging.store import encodings
from messaging.store.idempotency import StoredAnswer
from rme.core import errors, ids
from rme.core.db import clock, locks
from rme.core.db.due import next_turn
from rme.core.http.parsing import parse
from rme.tenants import audit, organizations
from rme.tenants.audit import Action, Actor
from rme.tenants.oauth.authentication import Caller

ActionKind = BulkAction.Kind
TICKED = "row"
"""The field of a list's boxes, by which ticked deliveries are chosen."""
TICKED_LIMIT = 100
SLICE = 100
TARGETS_LIMIT = 10_000
"""The most rows of one action."""
SCAN_LIMIT = 100_000
"""The most messages that are scanned for the rows of one action."""
PROBLEM_LIMIT = 100
REPEAT_WINDOW = timedelta(seconds=10)
"""Within this time the same order of the same person is one."""
PROGRAM = 0
"""The application id of messages that no application sent."""
STATUSES = {
    ActionKind.CANCEL: [Status.SCHEDULED],
    ActionKind.RESEND: [Status.FAILED, Status.BLOCKED, Status.EXPIRED],
    ActionKind.LIFT: [Status.BLOCKED],
    ActionKind.SEND_AGAIN: [Status.UNKNOWN],
    ActionKind.GIVE_UP: [Status.UNKNOWN],
}
"""The statuses of the deliveries that an action is for."""
DECISIONS = {ActionKind.SEND_AGAIN: Decision.SEND_AGAIN, ActionKind.GIVE_UP: Decision.GIVE_UP}
"""The actions on deliveries in manual review."""

Problem = tuple[str, str]
"""The id of a row, and why nothing could be done."""


# --- starting -----------------------------------------------------------------------------------
def start(
    viewer: Viewer,
    kind: str,
    targets: Sequence[UUID],
    *,
    scope: str,
    reason: str,
    contact_id: str = "",
) -> BulkAction:
    """Store an action and record it; a small one is done at once, others by a worker.

    `contact_id` is the person whom the scope names, if it is one alone. An order that has just been
    given is returned: its button was pressed twice.
    """
    order: dict[str, Any] = {
        "organization_id": viewer.organization_id,
        "kind": kind,
        "scope": scope[:1000],
        "reason": reason,
        "contact_id": contact_id,
        "targets": list(targets),
        "user_id": viewer.user.pk,
    }
    with transaction.atomic():
        locks.until_commit([f"bulk_actions {viewer.user.pk}"])
        just_now = ids.at_least(clock.now() - REPEAT_WINDOW)
        if action := BulkAction.objects.filter(**order, pk__gte=just_now).first():
            return action
        action = BulkAction.objects.create(
            **order,
            total=len(targets),
            started_by=viewer.user.get_username(),
            actor=asdict(viewer.actor),
        )
        changes = access.values(scope=scope, rows=len(targets))
        label = action.get_kind_display()
        note(
            viewer,
            Action.ORDERED,
            action,
            label=label,
            changes=changes,
            reason=reason,
            contact_id=contact_id,
        )
    if len(targets) <= SLICE:
        run_slice(action.pk)
    return action


def suppressions_of(organization_id: str, delivery_ids: Collection[UUID]) -> list[UUID]:
    """Return the suppressions in force that stopped deliveries; two queries.

    What was refused at accept names its entry. What was stopped later has its address.
    """
    rows = Delivery.objects.filter(organization_id=organization_id, pk__in=delivery_ids)
    deliveries = list(rows.values_list("address", "contact_id", "trace"))
    decisions = [ChannelDecision(*each) for _, _, trace in deliveries for each in trace or ()]
    suppression_ids = {each.detail for each in decisions if each.result == errors.Suppressed.code}
    condition = Q(pk__in=suppression_ids - {None}) | suppressions.about(
        {contact_id for _, contact_id, _ in deliveries}, (address for address, _, _ in deliveries)
    )
    current = suppressions.current(organization_id).filter(condition).order_by("pk")
    return list(current.values_list("pk", flat=True))


def stop(organization_id: str, action_id: UUID) -> bool:
    """Stop an action and return whether it was running. What is done stays."""
    running = BulkAction.objects.filter(
        organization_id=organization_id, pk=action_id, state=BulkAction.State.RUNNING
    )
    return bool(running.update(state=BulkAction.State.STOPPED, finished_at=Now()))


# --- doing --------------------------------------------------------------------------------------
def work() -> bool:
    """Do one slice of the action that has waited longest; return whether more may be waiting."""
    action_id = next_turn(BulkAction)
    return action_id is not None and run_slice(action_id)


def run_slice(action_id: UUID) -> bool:
    """Do the next slice of an action; return whether it could be done now."""
    with locks.alone(f"bulk_action {action_id}") as is_alone:
        if not is_alone:
            return False
        action = BulkAction.objects.get(pk=action_id)
        targets = action.targets[action.through : action.through + SLICE]
        if action.state != BulkAction.State.RUNNING:
            return True
        try:
            problems = _DO[ActionKind(action.kind)](action, targets) if targets else []
        except (errors.RateLimited, errors.Unavailable):
            return False  # a later turn goes on
        action.done += len(targets) - len(problems)
        action.failed += len(problems)
        running = BulkAction.objects.filter(pk=action_id)
        running.update(
            done=action.done,
            failed=action.failed,
            problems=[*action.problems, *map(list, problems)][:PROBLEM_LIMIT],
        )
        if action.through >= action.total:
            running.filter(state=BulkAction.State.RUNNING).update(
                state=BulkAction.State.DONE, finished_at=Now()
            )
        return True


def _cancel(action: BulkAction, targets: Sequence[UUID]) -> list[Problem]:
    """Cancel scheduled deliveries."""
    cancelled = cancel.cancel_deliveries(action.organization_id, targets)
    remaining = [each for each in targets if each not in cancelled]
    rows = Delivery.objects.filter(organization_id=action.organization_id, pk__in=remaining)
    # By an action that was interrupted before it stored its progress, or by another person.
    cancelled_earlier = set(rows.filter(status=Status.CANCELLED).values_list("pk", flat=True))
    return [
        (str(each), gettext_noop("no longer scheduled"))
        for each in remaining
        if each not in cancelled_earlier
    ]


def _lift(action: BulkAction, targets: Sequence[UUID]) -> list[Problem]:
    """Lift suppressions, and log each with its values and the reason."""
    with transaction.atomic():
        gate_lock.take_exclusive([action.organization_id])
        rows = Suppression.objects.filter(organization_id=action.organization_id, pk__in=targets)
        removed = suppressions.remove(rows)
        audit.record(_actor(action), audit.deletions(removed, action.reason))
    return []


def _decide(action: BulkAction, targets: Sequence[UUID]) -> list[Problem]:
    """Decide deliveries in manual review; each has an event and an audit entry with the reason."""
    decision = DECISIONS[ActionKind(action.kind)]
    changed = manual_review.decide(
        action.organization_id, targets, decision, reason=action.reason, actor=_actor(action)
    )
    remaining = [each for each in targets if each not in changed]
    # By an action that was interrupted before it stored its progress.
    decided = Event.objects.filter(
        organization_id=action.organization_id,
        pk__gte=ids.at_least(action.created_at),
        delivery_id__in=remaining,
        detail__decision=decision,
        detail__reason=action.reason,
    )
    decided_earlier = set(decided.values_list("delivery_id", flat=True)) if remaining else set()
    return [
        (str(each), gettext_noop("no longer in manual review"))
        for each in remaining
        if each not in decided_earlier
    ]


def _actor(action: BulkAction) -> Actor:
    """Return who ordered an action; by a release before, without the place."""
    starter = Actor(action.user_id, action.started_by)
    return Actor(**action.actor) if action.actor else starter


def _resend(action: BulkAction, targets: Sequence[UUID]) -> list[Problem]:
    """Accept the messages of deliveries anew, each for one recipient, with all checks."""
    scope: dict[str, object] = {"organization_id": action.organization_id}
    deliveries = list(Delivery.objects.filter(**scope, pk__in=targets))
    message_ids = {row.message_id for row in deliveries}
    messages = {row.pk: row for row in Message.objects.filter(**scope, pk__in=message_ids)}
    bodies = encodings.contents(action.organization_id, message_ids)
    problems: dict[UUID, str] = dict.fromkeys(targets, gettext_noop("no longer there"))
    by_mode: defaultdict[bool, list[tuple[UUID, Submission]]] = defaultdict(list)
    for row in deliveries:
        if row.message_id not in bodies:
            problems[row.pk] = gettext_noop("the content is no longer kept")
            continue
        request = _request(messages[row.message_id], row, bodies[row.message_id])
        key = CallerKey(f"bulk-action {action.pk} {row.pk}", digest(request))
        try:
            by_mode[row.test].append((row.pk, Submission(parse(MESSAGE, request), key)))
        except errors.InvalidPayload as error:
            problems[row.pk] = error.message
    organization = organizations.get(action.organization_id)
    for test, pairs in by_mode.items():
        caller = Caller(organization, PROGRAM, action.user_id, test)
        submissions = [submission for _, submission in pairs]
        answer = accept_bulk(caller, submissions, key=None, request_id=str(action.pk))
        assert isinstance(answer, results.BulkResult)  # the call as a whole has no key
        for (key_, _), result in zip(pairs, answer.results, strict=True):
            if problem := _problem(result):
                problems[key_] = problem
            else:
                del problems[key_]
    return [(str(key), problem) for key, problem in problems.items()]


def _problem(result: results.Result) -> str:
    """Return why a message was refused, or an empty text."""
    if isinstance(result, StoredAnswer):
        result = results.read(result)
    return result.error.message if isinstance(result, results.Refusal) else ""


def _request(message: Message, row: Delivery, body: ContentBody) -> dict[str, object]:
    """Return the request that sends a delivery's message again, as a caller would write it."""
    push = body.get("push")
    record = body.get("record") or {}
    context = {"variables": body.get("variables", {}), "recordId": record.get("id")}
    template = {"name": message.template, "language": message.language}
    variables = body.get("recipients", {}).get(str(row.pk), {})
    parts: dict[str, object] = {
        "channels": encodings.channels_of(message, row.channel),
        "strategy": message.strategy,
        "fallbackAfter": message.fallback_after,
        "category": message.category,
        "to": [{"contactId": row.contact_id, "variables": variables}],
        "template": _given(template) if message.template else None,
        "content": body.get("content"),
        "push": {to_camel(name): value for name, value in push.items()} if push else None,
        "context": _given(context),
        "from": _sender(row.organization_id, body),
        "metadata": {**(message.metadata or {}), "resentFrom": str(message.pk)},
    }
    return _given(parts)


def _given(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value}


def _sender(organization_id: str, body: ContentBody) -> dict[str, object]:
    """Return the sender of a message as a caller would write it.

    A domain is named if it may still be used. Its own name is left out: it is the default, and an
    SMS would show it.
    """
    sender = body.get("sender", Sender())
    name = body.get("sms_sender")
    domain = organization_policy.of(organization_id).domains.get(sender.get("domain") or "")
    if domain is None:
        return _given({"name": name})
    if not name and sender.get("name") != domain.name:
        name = sender.get("name")
    local_part = sender.get("local_part")
    return _given({"domain": domain.domain, "localPart": local_part, "name": name})


_DO = {
    ActionKind.CANCEL: _cancel,
    ActionKind.RESEND: _resend,
    ActionKind.LIFT: _lift,
    ActionKind.SEND_AGAIN: _decide,
    ActionKind.GIVE_UP: _decide,
}
