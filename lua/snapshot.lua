#!lua flags=no-writes
-- snapshot: all counters of a shard in one step. OUTBOX is the number of held records: all less those that are not.
--
-- KEYS
--   1  sale    hash: the shard's counters
--   2  orders  hash: buyer to record
--   3  adjust  hash: adjustment to what was done
-- ARGV
-- REPLIES
--   snapshot EPOCH GATE VERSION GUARD GUARD_SINCE_MS STOCK DEBT LENT TOTAL LIMIT OPENS_MS CLOSES_MS
--            RECORDS OUTBOX ADJUSTMENTS NOW_MS
--   not_loaded  no such shard
local sale = redis.call('HMGET', KEYS[1], 'epoch', 'gate', 'gate_version', 'guard', 'guard_since_ms', 'stock',
  'debt', 'lent', 'total', 'limit', 'opens_ms', 'closes_ms')
local unheld = redis.call('HGET', KEYS[1], 'unheld')
if not sale[1] then
  return 'not_loaded'
end
-- @include clock
-- @include counts
local records = redis.call('HLEN', KEYS[2])
return string.format('snapshot %s %.0f %.0f %.0f %s', table.concat(sale, ' '), records,
  math.max(0, records - unheld), redis.call('HLEN', KEYS[3]), digits(now_ms))
