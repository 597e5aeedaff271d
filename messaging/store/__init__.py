"""Storage of messages: the encodings, partitions, planner settings and SQL of the hot path.

Takes and returns values of `messaging.domain`. Calls no webhooks, consent or content: flows call
those, and hand the store what to write.

Other packages use:

- `accepted`: new messages, and the rows that are stored with them
- `idempotency`: keys of requests, and the answers to repeat
- `versions`: versions of templates
- `policies`: what organizations have decided about sending
- `transitions`: changes of statuses, by compare-and-set
- `locks`: locks of deliveries, before what belongs to them is read or changed
- `lookups`: deliveries by message or contact
- `claims`: takes deliveries that are ready, under a lease
- `due_organizations`: organizations that have something due, in an order fair to all
- `due_work`: deliveries whose time has come, and their open attempts
- `attempts`: attempts, their outcomes, and the statuses that follow, by one statement
- `gates`: suppressions, consent, pauses and recent sends, which gates decide by; new suppressions
- `feedback`: callbacks, providers' own ids, opens and clicks, and what receipts are about
- `events`: new events, with the webhook deliveries that they cause
- `webhooks`: webhook deliveries: new ones, claims, results, replays
- `encodings`: what rows store shorter than it is read; contents of messages
- `event_view`: events, those that are stored and those for which another row stands
- `archived`: messages that have left PostgreSQL for the archive, if there is one
- `retention`: deletes what has been kept long enough
- `reports`: what reports read of many rows: pages, counts, gauges, backlogs
- `people`: erasure and export of a person's messages
"""
