#!lua flags=allow-oom
-- confirm: "SQL has these live orders". What Redis does not know is recorded and its stock taken; what is
-- missing becomes debt, since SQL has sold it already.
--
-- KEYS
--   1  sale    hash: the shard's counters
--   2  orders  hash: buyer to record
--   3  outbox  set: buyers whose order is not yet confirmed
-- ARGV
--   1  epoch   the caller's
--   2+ rows    at most 100 pairs: buyer, and record "c ORDER QUANTITY BODY_HASH - RESERVED_MS"
-- REPLIES
--   done WORD...        one word per row: confirmed, already, adopted, adopted_short:N (N became debt),
--                       released (this very order was), other_order (another live order of this buyer)
--   not_loaded          no such shard
--   stale_epoch N       the shard has epoch N
--   bad_argument WORD   a malformed argument; nothing was done
--   bad_state           a counter is not a number; nothing was done
local ROWS_MAX = 100
local epoch = ARGV[1]
if #ARGV % 2 ~= 1 or #ARGV > 1 + 2 * ROWS_MAX then
  return 'bad_argument rows'
end
for i = 2, #ARGV, 2 do
  if not string.find(ARGV[i + 1], '^c %x[%x-]+ [1-9]%d?%d?%d? %x+ %- %d+$') then
    return 'bad_argument record'
  end
end
-- @include epoch
local wrong = wrong_epoch(epoch)
if wrong then
  return wrong
end
-- @include counts
-- @include stock
redis.call('SCARD', KEYS[3]) -- fails here, before any write, if the key has another type

local known, changed, settled, words = {}, {}, {}, { 'done' }
local function put(buyer, record)
  known[buyer] = record
  changed[#changed + 1] = buyer
  changed[#changed + 1] = record
  settled[#settled + 1] = buyer
end

local function quantity_of(record)
  return tonumber(string.match(record, '^%d+', 40))
end

local function confirm(buyer, wanted)
  local record = known[buyer]
  if record == nil then
    record = redis.call('HGET', KEYS[2], buyer)
  end
  local state = record and string.sub(record, 1, 1)
  if record and string.sub(record, 3, 38) == string.sub(wanted, 3, 38) then
    if state == 'r' then
      return 'released'
    end
    local before, after = quantity_of(record), quantity_of(wanted)
    if after > before then
      take_owed(after - before)
    else
      give(before - after)
    end
    local rest = string.match(record, '^%d+( .*)$', 40)
    put(buyer, 'c' .. string.sub(record, 2, 39) .. digits(after) .. rest)
    return state == 'h' and 'confirmed' or 'already'
  elseif record and state ~= 'r' then
    return 'other_order'
  end
  local missing = take_owed(quantity_of(wanted))
  put(buyer, wanted)
  return missing == 0 and 'adopted' or 'adopted_short:' .. digits(missing)
end

for i = 2, #ARGV, 2 do
  words[#words + 1] = confirm(ARGV[i], ARGV[i + 1])
end
if #changed > 0 then
  redis.call('HSET', KEYS[2], unpack(changed))
  save_stock()
  redis.call('SREM', KEYS[3], unpack(settled))
end
return table.concat(words, ' ')
