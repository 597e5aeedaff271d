"""Statistics: what happened in each minute and hour, by organization, channel, account and outcome.

A job counts closed minutes by sets; accepting and sending write nothing for it. Other packages use:

- `minutes`: how far the job has counted, and the purge
- `figures`: the figures of a channel over a period, and hour by hour
"""
