#!lua
-- preheat: makes a shard that does not sell yet (guard rebuilding), with the adjustments that its total
-- contains, in one step. It replaces only a shard of a lower epoch that is being rebuilt and has no order on
-- its way. Live orders come afterwards, by confirm.
--
-- KEYS
--   1  sale       hash: the shard's counters
--   2  orders     hash: buyer to record
--   3  adjust     hash: adjustment to "a DELTA" (applied) or "r DELTA" (refused)
-- ARGV
--   1  epoch      the load's
--   2  total      units of this shard, live orders included
--   3  version    of the sale's row
--   4  gate       open, paused or closed
--   5  limit      units per buyer
--   6  opens_ms   server time
--   7  closes_ms  server time
--   8+ adjustments  pairs: id, delta in units
-- REPLIES
--   made                the shard is this one now
--   exists              this load made it before
--   busy N              a shard of epoch N is in place that may not be replaced
--   bad_argument WORD   a malformed argument; nothing was done
local epoch, total, version, gate = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local limit, opens_ms, closes_ms = ARGV[5], ARGV[6], ARGV[7]
-- @include counts
if gate ~= 'open' and gate ~= 'paused' and gate ~= 'closed' then
  return 'bad_argument gate'
elseif not (is_count(epoch) and is_count(total) and is_count(version) and is_count(limit)
  and is_count(opens_ms) and is_count(closes_ms)) then
  return 'bad_argument number'
elseif #ARGV % 2 ~= 1 then
  return 'bad_argument adjustments'
end
for i = 8, #ARGV, 2 do
  if ARGV[i] == '' or not string.find(ARGV[i + 1], '^%-?[1-9]%d*$') then
    return 'bad_argument adjustments'
  end
end
-- @include clock
local old = redis.call('HMGET', KEYS[1], 'epoch', 'guard', 'unheld')
local records = redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[3]) -- as the calls above, it fails before any write if the key has another type
local on_their_way = old[1] and records - old[3]
if old[1] == epoch then
  return 'exists'
elseif old[1] and (tonumber(old[1]) > tonumber(epoch) or old[2] ~= 'rebuilding' or on_their_way > 0) then
  return 'busy ' .. old[1]
end

redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
for i = 8, #ARGV, 2 do
  redis.call('HSET', KEYS[3], ARGV[i], 'a ' .. ARGV[i + 1])
end
-- guard_since is one before now: no pass of this epoch can have begun earlier than its shard, so one that
-- begins in this very millisecond may lift the guard.
redis.call('HSET', KEYS[1], 'epoch', epoch, 'gate', gate, 'gate_version', version, 'guard', 'rebuilding',
  'guard_since_ms', digits(now_ms - 1), 'stock', total, 'debt', '0', 'lent', '0', 'total', total,
  'unheld', '0', 'limit', limit, 'opens_ms', opens_ms, 'closes_ms', closes_ms, 'token', '-')
return 'made'
