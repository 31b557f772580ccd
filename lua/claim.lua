#!lua flags=allow-oom
-- claim: may this call publish this order now? One call at a time may, and the same call is told so again.
--
-- KEYS
--   1  sale    hash: the shard's counters
--   2  orders  hash: buyer to record
-- ARGV
--   1  epoch   the caller's
--   2  buyer   id
--   3  order   id
--   4  call    id of the caller's call
-- REPLIES
--   granted RECORD      it may, until the claim in the record ends
--   not_before MS       another call may for MS more milliseconds
--   gone                no such held order: confirmed, released, another's or unknown
--   not_loaded          no such shard
--   stale_epoch N       the shard has epoch N
--   bad_argument WORD   a malformed argument; nothing was done
local epoch, buyer, order, call = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not string.find(call, '^%x+$') then
  return 'bad_argument call'
end
-- @include clock
-- @include epoch
local wrong = wrong_epoch(epoch)
if wrong then
  return wrong
end
-- @include claims
local record = redis.call('HGET', KEYS[2], buyer)
if not record or string.sub(record, 1, 38) ~= 'h ' .. order then
  return 'gone'
end
local granted, wait_ms = move_claim(buyer, record, call)
if granted then
  return 'granted ' .. granted
end
return string.format('not_before %.0f', wait_ms)
