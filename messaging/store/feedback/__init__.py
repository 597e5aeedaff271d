"""News of messages in the database.

- `callbacks`: calls of providers as they came, and the log of them
- `references`: providers' own ids of messages, and which of these to poll
- `hits`: opens and clicks of emails
- `receipts`: what receipts are about: attempts, deliveries with their events, bounced addresses
"""
