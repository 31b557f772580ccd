#!lua
-- deduct: reserves units for a buyer, or says why not. A retry with the same order gets the same answer.
--
-- Order of the checks: the buyer's own record, then loaded, epoch, guard, gate, rate, empty stock, window,
-- limit, too few, not_after, arguments. A record is read first, so a winner never hears a refusal. An empty
-- stock is answered before the window is looked at, which spares the losers' path the clock. not_after
-- stands where something would be written: before a claim moves and before units are taken.
--
-- The fast path compares one token (epoch and gate version) that exists only while the shard sells, so the
-- caller's copies of limit and window are known to be current; a caller who has none, or wants more than
-- their limit, sends a token that matches nothing. With an empty stock the token has a `!` behind it, which is
-- all that a loser's call needs to read. Whatever the fast path cannot answer, the rest explains from the
-- shard's own fields.
--
-- KEYS
--   1  sale       hash: the shard's counters
--   2  orders     hash: buyer to record
--   3  outbox     set: buyers whose order is not yet confirmed
--   4? rate       string: this buyer's attempts in the running window; absent when no limit is in force
-- ARGV
--   1  buyer      id
--   2  record     the record without its time: "h ORDER QUANTITY BODY_HASH CALL "
--   3  token      EPOCH.VERSION, or EPOCH.? to be told the terms
--   4  opens_ms   server time
--   5  closes_ms  server time
--   6  not_after_ms  server time after which nothing is done
--   7? rate_max   attempts per window
--   8? rate_window_ms  length of the window
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
--   terms LIMIT OPENS_MS CLOSES_MS TOKEN  the caller's are not in force; ask again with these
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
local record = redis.call('HGET', KEYS[2], ARGV[1])
if record and string.byte(record) == 114 and string.sub(record, 3, 38) ~= string.sub(ARGV[2], 3, 38) then
  record = false -- released, and another order: as if there were none
end

local counted = false
if not record then
  local token = redis.call('HGET', KEYS[1], 'token')
  if token == ARGV[3] then
    -- @include quantity
    -- @include attempt
    counted = true
    local stock = redis.call('HGET', KEYS[1], 'stock')
    -- @include clock
    local left = tonumber(stock) - quantity
    if left >= 0 and now_ms >= tonumber(ARGV[4]) and now_ms < tonumber(ARGV[5]) and now_ms <= tonumber(ARGV[6]) then
      redis.call('SADD', KEYS[3], ARGV[1])
      if left == 0 then
        redis.call('HSET', KEYS[1], 'stock', '0', 'token', token .. '!')
      else
        redis.call('HINCRBY', KEYS[1], 'stock', '-' .. quantity)
      end
      redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. now_ms)
      return now_ms
    end
  elseif token == ARGV[3] .. '!' then
    -- @include attempt
    return 0
  end
end

-- @include quantity
local epoch = string.match(ARGV[3], '^(%d+)%.')
if not epoch then
  return 'bad_argument token'
elseif not string.find(ARGV[2], '^h %x[%x-]+ %d+ %x+ %x+ $') then
  return 'bad_argument record'
end
-- @include clock
-- @include epoch
local wrong = wrong_epoch(epoch)
if wrong then
  return wrong
end

if record then
  if now_ms > tonumber(ARGV[6]) then
    return 'too_late'
  end
  -- @include claims
  local order = string.sub(ARGV[2], 3, 38)
  local words = read_record(record)
  local mine = read_record(ARGV[2] .. '0')
  if words.state == 'r' then
    return 'order_closed ' .. record
  elseif words.order ~= order then
    return 'already_ordered ' .. record
  elseif words.hash ~= mine.hash then
    return 'key_reused ' .. record
  elseif words.state == 'c' then
    return 'confirmed ' .. record
  end
  local claimed, wait_ms = move_claim(ARGV[1], record, mine.holder)
  if claimed then
    return 'claimed ' .. claimed
  end
  return string.format('in_progress %.0f %s', wait_ms, record)
end

local sale = redis.call('HMGET', KEYS[1], 'gate', 'guard', 'stock', 'limit', 'opens_ms', 'closes_ms', 'token')
local gate, guard, stock, limit, opens_ms, closes_ms, token =
  sale[1], sale[2], sale[3], sale[4], sale[5], sale[6], sale[7]
if guard ~= 'none' then
  return 'recovering'
elseif gate ~= 'open' then
  return gate
end
local in_force = string.match(token, '^[^!]*')
if tonumber(quantity) <= tonumber(limit) and in_force ~= ARGV[3] then
  -- Not counted as an attempt: the same one comes again with these terms.
  return table.concat({ 'terms', limit, opens_ms, closes_ms, in_force }, ' ')
end
local answer
if stock == '0' then
  answer = 0
elseif now_ms < tonumber(opens_ms) then
  answer = 'not_open_yet ' .. opens_ms
elseif now_ms >= tonumber(closes_ms) then
  answer = 'closed'
elseif tonumber(quantity) > tonumber(limit) then
  answer = 'over_limit ' .. limit
elseif tonumber(quantity) > tonumber(stock) then
  answer = -tonumber(stock)
else
  answer = 'too_late'
end
if not counted then
  -- @include attempt
end
return answer
