"""What an organization has decided: categories, senders, accounts, limits, pauses.

Other packages use:

- `organization_policy`: all of it, read once and kept for two seconds
- `send_limits`: the ceilings on accepted messages
- `pausing`: ends a pause
- `connection_check`: checks accounts by a log-in or a test message
- `domain_checks`, `domain_records`: the DNS records of sender domains
- `account_states`: activates, pauses and drains accounts, and stores their routing order
"""
