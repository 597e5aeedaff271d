"""Reports: history, messages, trace, health, metrics.

Other packages use:

- `queries`: a message with its events, and the history in pages
- `delivery_list`: deliveries by filters that combine, in pages
- `trace`: the steps of a message's recipients
- `health`: an organization's health report
- `checks`: what the deployment depends on
- `configuration`: findings in the configuration
- `open_tasks`: pauses, reviews that wait, and rejected rows of imports
- `first_steps`: what an organization lacks before its first delivered message
- `backlog`: the deliveries that are ready and have not gone
- `account_hour`: provider accounts in the last hour, for the admin
- `metrics`: the gauges that are read from the database
"""
