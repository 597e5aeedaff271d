"""How a delivery goes on after an attempt or a receipt.

Other packages use:

- `outcomes`: an attempt's outcome, as far as its delivery depends on it
- `next_steps`: what follows from outcomes: failover, fallback, backoff, resends, or the end
- `receipts`: what receipts imply, and the status that follows from all of them
- `transitions`: a change of a delivery's status
"""
