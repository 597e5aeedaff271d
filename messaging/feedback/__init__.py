"""Feedback on messages: provider callbacks, receipts, inbound SMS, polling and tracking.

Other packages use:

- `receipts`: `apply` receipts to deliveries; `Receipt`
- `tracking`: store opens and clicks
- `listeners`: keep providers' connections in a worker process
- `tasks`: request a worker for stored callbacks
- `callbacks`, `sms_parts`, `tracking`: `purge`
- `callback_log`: the verdicts on provider callbacks; `purge`
- `views`: the endpoint of provider callbacks
"""
