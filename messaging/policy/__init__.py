"""What an organization has decided: categories, senders, accounts, limits, pauses."""
