#!lua flags=allow-oom
-- gate: sets what the operator wants, with limit and window. The only mutating script that asks for no epoch,
-- so that a suspend always bites; an older row's decision never overwrites a newer one.
--
-- KEYS
--   1  sale       hash: the shard's counters
-- ARGV
--   1  version    of the sale's row
--   2  gate       open, paused or closed
--   3  limit      units per buyer
--   4  opens_ms   server time
--   5  closes_ms  server time
-- REPLIES
--   set                 the shard has this gate
--   older N             the shard has version N, which is newer
--   not_loaded          no such shard
--   bad_argument WORD   a malformed argument; nothing was done
local version, gate, limit, opens_ms, closes_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
-- @include counts
if gate ~= 'open' and gate ~= 'paused' and gate ~= 'closed' then
  return 'bad_argument gate'
elseif not (is_count(version) and is_count(limit) and is_count(opens_ms) and is_count(closes_ms)) then
  return 'bad_argument number'
end
-- @include token
local sale = redis.call('HMGET', KEYS[1], 'epoch', 'guard', 'gate_version', 'stock')
if not sale[1] then
  return 'not_loaded'
elseif tonumber(version) < tonumber(sale[3]) then
  return 'older ' .. sale[3]
end
redis.call('HSET', KEYS[1], 'gate', gate, 'gate_version', version, 'limit', limit, 'opens_ms', opens_ms,
  'closes_ms', closes_ms, 'token', token(sale[1], version, gate, sale[2], sale[4]))
return 'set'
