"""What is measured and traced on a message's way.

Other packages use:

- `timings`: the histograms of sending and of webhooks
- `spans`: the spans of claims, attempts, receipts and webhook requests
"""
