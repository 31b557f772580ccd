#!lua
-- adjust: changes a shard's units once per id, and remembers refusals too, so that a repeat never does what
-- the first call refused. An owed change is one that SQL contains already: it is never refused, not even
-- over a remembered refusal, and what is missing becomes debt. An owed change that takes away under the id of a loan
-- ends it: the units are lent already.
--
-- KEYS
--   1  sale    hash: the shard's counters
--   2  adjust  hash: adjustment to "a DELTA" (applied), "r DELTA" (refused) or "l UNITS" (lent)
-- ARGV
--   1  epoch   the caller's
--   2  id      of the adjustment
--   3  delta   units, negative to take away
--   4  owed    1 or 0
-- REPLIES
--   applied             done now
--   refused             not enough stock, now and for ever under this id
--   already_applied     done before
--   already_refused     refused before
--   not_loaded          no such shard
--   stale_epoch N       the shard has epoch N
--   bad_argument WORD   a malformed argument, or a total out of bounds; nothing was done
--   bad_state           a counter is not a number; nothing was done
local STOCK_MAX = 1000000000
local epoch, id, delta_text, owed = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- @include counts
local sign, size_text = string.match(delta_text, '^(%-?)([1-9]%d*)$')
if not is_count(size_text) or tonumber(size_text) > STOCK_MAX then
  return 'bad_argument delta'
elseif owed ~= '0' and owed ~= '1' then
  return 'bad_argument owed'
elseif id == '' then
  return 'bad_argument id'
end
-- @include epoch
local wrong = wrong_epoch(epoch)
if wrong then
  return wrong
end
-- @include stock
local size, adds = tonumber(size_text), sign == ''
local before = redis.call('HGET', KEYS[2], id)
local lent = redis.call('HGET', KEYS[1], 'lent')
if before and string.sub(before, 1, 1) == 'l' then
  local total = tonumber(counters[3]) - size
  if not is_count(lent) then
    return 'bad_state'
  elseif owed == '0' or adds or before ~= 'l ' .. size_text or total < 0 or lent - size < 0 then
    return 'bad_argument loan'
  end
  redis.call('HSET', KEYS[2], id, 'a ' .. delta_text)
  save_stock('total', digits(total), 'lent', digits(lent - size))
  return 'applied'
elseif before and string.sub(before, 1, 1) == 'a' then
  return 'already_applied'
elseif before and owed == '0' then
  return 'already_refused'
elseif not adds and owed == '0' and stock < size then
  redis.call('HSET', KEYS[2], id, 'r ' .. delta_text)
  return 'refused'
end

local total = tonumber(counters[3])
if adds then
  total = total + size
  give(size)
else
  total = total - size
  take_owed(size)
end
if total < 0 or total > STOCK_MAX then
  return 'bad_argument total'
end
redis.call('HSET', KEYS[2], id, 'a ' .. delta_text)
save_stock('total', digits(total))
return 'applied'
