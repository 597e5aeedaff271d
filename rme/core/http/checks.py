"""Checks of hosts that people typed: a process of its own calls the host, and no thread waits.

- `start` starts one and returns. The page of any process shows its progress and result: `find`.
- `answer_of` is for a request whose answer depends on the host. The request gives its thread back,
  and starts again when the host has answered.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import structlog
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_noop

from rme.core import errors
from rme.core.process import admission
from rme.core.process.errands import HOST_ERRANDS, Overrun
from rme.core.redis import host_checks
from rme.core.redis.host_checks import HostCheck, Start

log = structlog.get_logger(__name__)

R = TypeVar("R")

SECONDS = 3.0
"""CPU time of a check; the host may take about ten times as long on the clock."""
OVERRUN = gettext_noop("The check took too long, so rme stopped it.")
FAILED = gettext_noop("The check failed. The service's log says why.")
_REFUSALS = {
    Start.OWN: gettext_noop("Another check of your organization is running. Wait for its result."),
    Start.ALL: gettext_noop(
        "Too many organizations are checking hosts now. Try again in a minute."
    ),
}

Work = Callable[..., Mapping[str, object]]


def start(request: HttpRequest, organization_id: str, name: str, work: Work, *args: object) -> None:
    """Start `work(*args)`, which returns what the page of `name` shows, as JSON, without secrets.

    It is a function of a module, and its arguments can be pickled. Raises RateLimited, with a
    sentence for the page, if a check of the organization runs, or if there are too many.
    """
    with_gateway = isinstance(request.META.get(admission.TURN), admission.Turn)
    _begin(organization_id, name)
    try:
        future = _submit(organization_id, work, args, apart=with_gateway)
    except BaseException:
        host_checks.end(organization_id, name, None)
        raise
    future.add_done_callback(partial(_end, organization_id, name))


def find(organization_id: str, name: str) -> HostCheck | None:
    """Return an organization's check of the last ten minutes."""
    return find_each(organization_id, [name]).get(name)


def find_each(organization_id: str, names: Sequence[str]) -> dict[str, HostCheck]:
    """Return those checks of an organization that are known, by name."""
    return host_checks.read(organization_id, names) if names else {}


def answer_of(
    request: HttpRequest, organization_id: str, name: str, work: Callable[..., R], *args: object
) -> R:
    """Return what `work(*args)` returns, once the request has started again for it.

    The request must do nothing before that it may not do twice. Raises what the work raises,
    Overrun, and RateLimited: to start again, or for the same reasons as `start`.
    """
    future = request.META.get(admission.AWAITED)
    if isinstance(future, Future):
        result: R = future.result()
        return result
    turn = request.META.get(admission.TURN)
    if not isinstance(turn, admission.Turn) or not turn.may_repeat:
        return work(*args)
    _begin(organization_id, name)
    try:
        future = _submit(organization_id, work, args, apart=True)
    except BaseException:
        host_checks.end(organization_id, name, None)
        raise
    future.add_done_callback(lambda _: host_checks.end(organization_id, name, None))
    turn.wait_for(future)
    raise admission.too_many()  # nobody sees it: the request starts again


def _begin(organization_id: str, name: str) -> None:
    begun = host_checks.begin(organization_id, name)
    if begun in _REFUSALS:
        raise errors.RateLimited(gettext(_REFUSALS[begun]), headers={"Retry-After": "10"})


def _submit(
    organization_id: str, work: Callable[..., R], args: Sequence[object], *, apart: bool
) -> "Future[R]":
    """Start the work in a process of its own; without the web server do it here and now.

    Outside the web server, as in tests, nobody else waits for this thread.
    """
    try:
        if apart:
            return HOST_ERRANDS.start(organization_id, SECONDS, work, *args)
        HOST_ERRANDS.budget.require(organization_id)
    except errors.RateLimited as refusal:
        seconds = refusal.headers.get("Retry-After", "60")
        raise errors.RateLimited(
            gettext("Your organization's checks took too long lately. Try again in %(seconds)s s.")
            % {"seconds": seconds},
            headers={"Retry-After": seconds},
        ) from None
    done: Future[R] = Future()
    try:
        done.set_result(work(*args))
    except Exception as error:  # noqa: BLE001 (as of another process)
        done.set_exception(error)
    return done


def _end(organization_id: str, name: str, done: "Future[Mapping[str, Any]]") -> None:
    """Record the result of a check."""
    error = done.exception()
    if error is None:
        result = done.result()
    elif isinstance(error, Overrun):
        result = {"problem": OVERRUN}
    else:
        log.error("host_check.failed", name=name, organization_id=organization_id, exc_info=error)
        result = {"problem": FAILED}
    host_checks.end(organization_id, name, result)
