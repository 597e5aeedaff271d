"""Who may do what: organizations, people, OAuth applications and API keys."""
