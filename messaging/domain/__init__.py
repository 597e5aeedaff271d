"""Values and decisions of messaging: no Django, no SQL, no clock or settings of their own.

Nothing here imports anything of rme but this package, so a decision is tested on values. What a
decision depends on (the time, a random number, a limit from the settings) is an argument.

Other packages use:

- `statuses`: statuses, reasons, event types, and which status may follow which
- `transitions`: a change of a delivery's status
- `channels`: the channels, and the wildcard for all of them
- `contents`: what a message says beside its template
- `deliveries`: a delivery as workers and the sweeper see it
- `outcomes`: an attempt's outcome, as far as its delivery depends on it
- `next_steps`: what follows from outcomes: failover, fallback, backoff, resends, or the end
- `policy`: what organizations decide: categories, domains, quiet hours, ceilings
- `gates`: what stops a message, and the verdict
- `routing`: which accounts take a send, and in which order
- `attention`: what needs an admin now: accounts, webhooks and backlogs that fail
- `sentences`: sentences for people, which the console translates
- `figures`: the figures of accepted deliveries, by their statuses
- `admission`: whether an account takes sends now, and which sends may go
- `receipts`: what receipts imply, and the status that follows from all of them
- `planning`: the plan of a request: what goes to whom, when and by which channel, or a refusal
- `timing`: when schedules are due, quiet hours, how late a send may be, when to poll
- `webhooks`: webhook deliveries that are due, and the results of attempts
- `decisions`: the choice of a recipient's channel
"""
