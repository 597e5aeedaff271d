"""Provider accounts and routing: set up, check, test, activate and order accounts.

Other packages use `lanes` (all accounts of a channel in their order), `account_settings`,
`account_page`, `route_page` (what would happen to a message), `callback_page` (the log of
callbacks), `domain_page`, `routing_words` (states of accounts in words) and `health_bars`
(an account's last hours).
"""
