"""A strict limit for any sixty minutes, in Redis: for services that silently lose what exceeds it.

It counts minute by minute; a token bucket would let through twice as much. While Redis is away
nothing passes: waiting is better than losing messages.
"""

import time

import structlog
from redis import RedisError

from rme.core.redis.connection import redis_client

log = structlog.get_logger(__name__)

REDIS_AWAY_SECONDS = 5.0

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


def take(key: str, count: int, limit: int) -> float:
    """Count `count` and return 0; above the limit, count nothing and return the seconds to wait."""
    try:
        seconds = redis_client().eval(
            _TAKE, 1, f"rme:push:hour:{key}", str(count), str(limit), str(int(time.time()))
        )
        return float(str(seconds))
    except RedisError as error:
        log.warning("push.hour_uncounted", error=type(error).__name__)
        return REDIS_AWAY_SECONDS
