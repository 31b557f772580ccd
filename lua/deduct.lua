#!lua
-- deduct: reserves units for a buyer, or says why not. A retry with the same order gets the same answer.
--
-- Order of the checks: the buyer's own record, then loaded, epoch, guard, gate, rate, empty stock, window,
-- limit, too few, not_after, arguments. A winner never hears a refusal: every way to one reads her record first.
-- An empty stock is answered before the window is looked at, which spares the losers' path the clock. not_after
-- stands where something would be written: before a claim moves and before units are taken.
--
-- The fast path compares one token (epoch and gate version) that exists only while the shard sells, and that
-- callers are told only inside the window: who knows it has the limit in force, and it is past the opening. A
-- caller who has none, or wants more than the limit, sends a token that matches nothing. With an empty stock the
-- token has a `!` behind it, which is all that a loser's call needs to read. Whatever the fast path cannot
-- answer, the rest explains from the shard's own fields.
--
-- It takes first and looks then: HINCRBY tells what is left, HSETNX finds a record in the way, and if either says
-- no, the units are put back in the same step. The record in state `h` is the outbox entry: one write makes both.
--
-- Numbers come in one argument, since each argument costs every call and only a winner's needs these: the units;
-- the server time from which none are taken, which is the close or just past not_after; the server time after which
-- nothing is done; attempts per window, and its length (both 0 when no limit is in force).
--
-- KEYS
--   1  sale       hash: the shard's counters
--   2  orders     hash: buyer to record
--   3? seen       bitmap: who has tried before; this and the next are absent when no limit is in force
--   4? rate       string: this buyer's further attempts in the running window
-- ARGV
--   1  buyer      id
--   2  record     the head of the record: "h ORDER BODY_HASH CALL "
--   3  token      EPOCH.VERSION, or EPOCH.? to be told the terms
--   4  numbers    "QUANTITY UNTIL_MS NOT_AFTER_MS MAX WINDOW_MS", see above
--   5? seen_bit   the buyer's bit in seen
-- REPLIES
--   N > 0                     reserved at server time N, in milliseconds
--   0                         sold out
--   N < 0                     only -N units are left
--   claimed RECORD            hers, and this call may publish it
--   in_progress MS RECORD     hers; another call may publish it for MS more milliseconds
--   confirmed RECORD          hers, and SQL has it
--   order_closed RECORD       this very order was released
--   key_reused RECORD         this very order, asked for with another body
--   already_ordered RECORD    another live order of this buyer
--   terms LIMIT CLOSES_MS TOKEN  the caller's are not in force; ask again with these
--   not_loaded                no such shard
--   stale_epoch N             the shard has epoch N
--   recovering                a guard is raised
--   paused                    by the gate
--   closed                    by the gate or the window
--   not_open_yet OPENS_MS     before the window
--   over_limit LIMIT          more than one buyer may have
--   rate_limited MS           too many attempts; the window ends in MS
--   too_late                  arrived after not_after_ms
--   bad_argument WORD         a malformed argument; nothing was done
local record, released_other, repeated
local token = redis.call('HGET', KEYS[1], 'token')
if token == ARGV[3] then
  -- @include mark
  if repeated then
    -- @include record
    if not record then
      -- @include attempt
    end
  end
  if not record then
    local time = redis.call('TIME')
    local now_ms = time[1] * 1000 + time[2] / 1000 -- as a reply, the server cuts it to whole milliseconds
    local quantity, until_ms = string.match(ARGV[4], '^([1-9]%d?%d?%d?) (%d+) ')
    if quantity and now_ms < tonumber(until_ms) then
      local left = redis.call('HINCRBY', KEYS[1], 'stock', '-' .. quantity)
      if left >= 0 then
        local hold = ARGV[2] .. quantity .. ' ' .. time[1] .. ' ' .. time[2]
        local made = redis.pcall('HSETNX', KEYS[2], ARGV[1], hold)
        if made == 0 then
          -- @include record
          if released_other then
            redis.call('HSET', KEYS[2], ARGV[1], hold)
            redis.call('HINCRBY', KEYS[1], 'unheld', '-1')
            made = 1
          end
        end
        if made == 1 then
          if left == 0 then
            redis.call('HSET', KEYS[1], 'token', token .. '!')
          end
          return now_ms
        end
      end
      redis.call('HINCRBY', KEYS[1], 'stock', quantity)
    end
  end
end
if record == nil then
  -- @include record
end
if not record and token == ARGV[3] .. '!' then
  -- @include mark
  if repeated then
    -- @include attempt
  end
  return 0
end

local quantity, not_after_ms = string.match(ARGV[4], '^([1-9]%d?%d?%d?) %d+ (%d+) %d+ %d+$')
local epoch = string.match(ARGV[3], '^(%d+)%.')
local order, hash, call = string.match(ARGV[2], '^h (%x[%x-]+) (%x+) (%x+) $')
if not quantity then
  return 'bad_argument numbers'
elseif not epoch then
  return 'bad_argument token'
elseif not order then
  return 'bad_argument record'
end
-- @include clock
-- @include epoch
local wrong = wrong_epoch(epoch)
if wrong then
  return wrong
end

if record then
  if repeated == nil then
    -- @include mark
  end
  if now_ms > tonumber(not_after_ms) then
    return 'too_late'
  end
  -- @include claims
  local words = read_record(record)
  if words.state == 'r' then
    return 'order_closed ' .. record
  elseif words.order ~= order then
    return 'already_ordered ' .. record
  elseif words.hash ~= hash then
    return 'key_reused ' .. record
  elseif words.state == 'c' then
    return 'confirmed ' .. record
  end
  local claimed, wait_ms = move_claim(ARGV[1], record, call)
  if claimed then
    return 'claimed ' .. claimed
  end
  return string.format('in_progress %.0f %s', wait_ms, record)
end

local sale = redis.call('HMGET', KEYS[1], 'gate', 'guard', 'stock', 'limit', 'opens_ms', 'closes_ms', 'token')
local gate, guard, stock, limit, opens_ms, closes_ms = sale[1], sale[2], sale[3], sale[4], sale[5], sale[6]
if guard ~= 'none' then
  return 'recovering'
elseif gate ~= 'open' then
  return gate
end
local in_force = string.match(sale[7], '^[^!]*')
local open, over = now_ms >= tonumber(opens_ms), now_ms >= tonumber(closes_ms)
if tonumber(quantity) <= tonumber(limit) and in_force ~= ARGV[3] and open and not over then
  -- Not counted as an attempt: the same one comes again with these terms.
  return table.concat({ 'terms', limit, closes_ms, in_force }, ' ')
end
local answer
if stock == '0' then
  answer = 0
elseif not open then
  answer = 'not_open_yet ' .. opens_ms
elseif over then
  answer = 'closed'
elseif tonumber(quantity) > tonumber(limit) then
  answer = 'over_limit ' .. limit
elseif tonumber(quantity) > tonumber(stock) then
  answer = -tonumber(stock)
else
  answer = 'too_late'
end
if repeated == nil then
  -- @include mark
  if repeated then
    -- @include attempt
  end
end
return answer
