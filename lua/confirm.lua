#!lua flags=allow-oom
-- confirm: "SQL has these live orders". What Redis does not know is recorded and its stock taken; what is
-- missing becomes debt, since SQL has sold it already.
--
-- KEYS
--   1  sale    hash: the shard's counters
--   2  orders  hash: buyer to record
-- ARGV
--   1  epoch   the caller's
--   2+ rows    at most 100 pairs: buyer, "c ORDER BODY_HASH - QUANTITY RESERVED_S RESERVED_US"
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
  if not string.find(ARGV[i + 1], '^c %x[%x-]+ %x+ %- [1-9]%d?%d?%d? %d+ %d+$') then
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

local known, changed, words = {}, {}, { 'done' }
local unheld = tonumber(counters[5])
local function put(buyer, record)
  known[buyer] = record
  changed[#changed + 1] = buyer
  changed[#changed + 1] = record
end

local function parts(record)
  local head, quantity, rest = string.match(record, '^%a( %S+ %S+ %S+ )(%d+)(.*)$')
  return head, tonumber(quantity), rest
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
    local head, before, rest = parts(record)
    local _, after = parts(wanted)
    if after > before then
      take_owed(after - before)
    else
      give(before - after)
    end
    put(buyer, 'c' .. head .. digits(after) .. rest)
    if state == 'h' then
      unheld = unheld + 1
      return 'confirmed'
    end
    return 'already'
  elseif record and state ~= 'r' then
    return 'other_order'
  end
  local _, quantity = parts(wanted)
  local missing = take_owed(quantity)
  put(buyer, wanted)
  if not record then
    unheld = unheld + 1
  end
  return missing == 0 and 'adopted' or 'adopted_short:' .. digits(missing)
end

for i = 2, #ARGV, 2 do
  words[#words + 1] = confirm(ARGV[i], ARGV[i + 1])
end
if #changed > 0 then
  redis.call('HSET', KEYS[2], unpack(changed))
  save_stock('unheld', digits(unheld))
end
return table.concat(words, ' ')
