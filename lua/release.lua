#!lua flags=allow-oom
-- release: "SQL closed or refused these orders". Units go back once per order, debt first. An order that
-- Redis does not know leaves a fence, so that a late copy of its deduct cannot hold units under that id.
--
-- KEYS
--   1  sale    hash: the shard's counters
--   2  orders  hash: buyer to record
-- ARGV
--   1  epoch   the caller's
--   2+ rows    at most 100 pairs: buyer, order
-- REPLIES
--   done WORD...        one word per row: released:N (N units went back), already, fenced,
--                       other_order (another live order of this buyer; nothing was done)
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
  if #ARGV[i + 1] ~= 36 or not string.find(ARGV[i + 1], '^[%x-]+$') then
    return 'bad_argument order'
  end
end
-- @include clock
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

local function release(buyer, order)
  local record = known[buyer]
  if record == nil then
    record = redis.call('HGET', KEYS[2], buyer)
  end
  local state = record and string.sub(record, 1, 1)
  if record and string.sub(record, 3, 38) == order then
    if state == 'r' then
      return 'already'
    end
    local units = tonumber(string.match(record, '^%a %S+ %S+ %S+ (%d+)'))
    give(units)
    put(buyer, 'r' .. string.sub(record, 2))
    if state == 'h' then
      unheld = unheld + 1
    end
    return 'released:' .. digits(units)
  elseif record and state ~= 'r' then
    return 'other_order'
  end
  put(buyer, string.format('r %s - - 0 %s %s', order, time[1], time[2]))
  if not record then
    unheld = unheld + 1
  end
  return 'fenced'
end

for i = 2, #ARGV, 2 do
  words[#words + 1] = release(ARGV[i], ARGV[i + 1])
end
if #changed > 0 then
  redis.call('HSET', KEYS[2], unpack(changed))
  save_stock('unheld', digits(unheld))
end
return table.concat(words, ' ')
