"""What reports read of many rows.

- `history`: the keys of a page of messages
- `deliveries`: a page of deliveries, by filters that combine
- `message_ids`: messages by a part of their ids
- `accounts`: the latest attempts and circuit changes of provider accounts
- `statistics`: minutes and hours, counted and read
- `latencies`: the buckets of latencies, and their percentiles
- `gauges`: backlogs and lags of the deployment
- `backlogs`: counts of an organization's waiting deliveries, up to a limit
"""
