"""Parts of the environment that take more than a line of `rme.settings` to read.

- `smtp_url`: the demo organization's mail server
- `database_settings`: PostgreSQL, and a pooler before it
- `archive_settings`: where old messages are archived, and after how long
- `secret_key`: the deployment's key where the environment has none
"""
