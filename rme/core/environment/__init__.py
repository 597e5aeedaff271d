"""Parts of the environment that take more than a line of `rme.settings` to read.

- `database_url`: PostgreSQL, on one host or several
- `smtp_url`: the demo organization's mail server
- `database_settings`: PostgreSQL, and a pooler before it
- `broker_settings`: the type of RabbitMQ's queues
- `redis_url`: Redis or its Sentinels, also as Celery's broker
- `archive_settings`: where old messages are archived, and after how long
- `secret_files`: secrets that files hold
- `tracing_settings`: whether traces are made
- `secret_key`: the deployment's key where the environment sets no key
- `values`: switches, lists, numbers and the service's own URL
- `diagnosis`: why PostgreSQL or Redis can't be reached
- `deploy_checks`: whether they answer, for `check --deploy` and `doctor`
- `plain_errors`: one line instead of a traceback if a process can't start
"""
