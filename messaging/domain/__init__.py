"""Values and decisions of messaging: no Django, no SQL, no clock or settings of their own.

Nothing here imports anything of rme but this package, so a decision is tested on values. What a
decision depends on (the time, a random number, a limit from the settings) is an argument.

Other packages use:

- `statuses`: statuses, reasons, event types, and which status may follow which
- `channels`: the channels, and the wildcard for all of them
- `contents`: what a message says beside its template
- `deliveries`: a delivery as workers and the sweeper see it
- `policy`: what organizations decide: categories, domains, quiet hours, ceilings
- `gates`: what stops a message, and the verdict
- `planning`: the plan of a request: what goes to whom, when and by which channel, or a refusal
- `timing`: when schedules are due, quiet hours, how late a send may be, when to poll
- `accounts`: which accounts take a send, in which order, and whether they take it now
- `progress`: what outcomes and receipts change about a delivery
- `webhooks`: webhook deliveries that are due, and the results of attempts
- `attention`: what needs an admin now: accounts, webhooks and backlogs that fail
- `figures`: the figures of accepted deliveries, by their statuses
- `sentences`: sentences for people, which the console translates
"""
