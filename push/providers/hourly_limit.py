"""A strict count of an hour, in Redis: for services that lose silently what is above.

It holds for any sixty minutes, counted minute by minute; a bucket that leaks would let through
twice as much. When Redis is away nothing passes: to wait is better than to be lost.
"""

import time

import structlog
from redis import RedisError

from rme.core.redis.connection import redis_client

log = structlog.get_logger(__name__)

AWAY_SECONDS = 5.0

# The hash has a count for each minute of the hour. The minute that is ending counts in full.
_TAKE = """
local minute = math.floor(tonumber(ARGV[3]) / 60)
local cost, most, sum, oldest = tonumber(ARGV[1]), tonumber(ARGV[2]), 0, minute
local counts = redis.call('HGETALL', KEYS[1])
for i = 1, #counts, 2 do
  local at = tonumber(counts[i])
  if at < minute - 60 then redis.call('HDEL', KEYS[1], counts[i])
  else sum = sum + tonumber(counts[i + 1]); oldest = math.min(oldest, at) end
end
if sum + cost > most then return math.max(1, (oldest + 61) * 60 - tonumber(ARGV[3])) end
redis.call('HINCRBY', KEYS[1], minute, cost)
redis.call('EXPIRE', KEYS[1], 3720)
return 0
"""


def wait(name: str, cost: int, most: int) -> float:
    """Count so many; or give the seconds after which they may pass, and count nothing."""
    try:
        answer = redis_client().eval(
            _TAKE, 1, f"rme:push:hour:{name}", str(cost), str(most), str(int(time.time()))
        )
        return float(str(answer))
    except RedisError as error:
        log.warning("push.hour_uncounted", error=type(error).__name__)
        return AWAY_SECONDS
