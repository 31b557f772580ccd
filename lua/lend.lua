#!lua
-- lend: takes units from a shard for another one that has none left, once per id. They stay in the shard's total, as
-- `lent`, until `adjust` under the same id says that the other shard has them.
--
-- KEYS
--   1  sale    hash: the shard's counters
--   2  adjust  hash: adjustment to what was done: "l UNITS" (lent), later "a -UNITS"
-- ARGV
--   1  epoch   the caller's
--   2  id      of the transfer
--   3  units   how many
-- REPLIES
--   lent                they are taken, now or by an earlier call with this id
--   short               fewer are free; nothing was done, and a repeat may still take them
--   guarded             a guard is raised: what the shard has may be wrong
--   not_loaded          no such shard
--   stale_epoch N       the shard has epoch N
--   bad_argument WORD   a malformed argument, or other units under this id; nothing was done
--   bad_state           a counter is not a number; nothing was done
local epoch, id, units = ARGV[1], ARGV[2], ARGV[3]
-- @include counts
if not is_count(units) or units == '0' then
  return 'bad_argument units'
elseif id == '' then
  return 'bad_argument id'
end
-- @include epoch
local wrong = wrong_epoch(epoch)
if wrong then
  return wrong
end
-- @include stock
local before = redis.call('HGET', KEYS[2], id)
if before then
  local known = before == 'l ' .. units or before == 'a -' .. units
  return known and 'lent' or 'bad_argument id'
end
local more = redis.call('HMGET', KEYS[1], 'guard', 'lent')
if not is_count(more[2]) then
  return 'bad_state'
elseif more[1] ~= 'none' then
  return 'guarded'
elseif stock < tonumber(units) then
  return 'short'
end
take_owed(tonumber(units)) -- they are there, so none is owed
redis.call('HSET', KEYS[2], id, 'l ' .. units)
save_stock('lent', digits(more[2] + units))
return 'lent'
