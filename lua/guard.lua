#!lua flags=allow-oom
-- guard: raises or lifts what repair needs; no operator's action touches it. Only a pass that began after the
-- guard was raised last may lift it, and only the kind that it was made for.
--
-- KEYS
--   1  sale           hash: the shard's counters
-- ARGV
--   1  epoch          the caller's
--   2  action         raise or lift
--   3  guard          recovering or rebuilding
--   4  pass_began_ms  server time at which the pass began; 0 to raise
-- REPLIES
--   raised              the guard stands; rebuilding is never lowered to recovering
--   lifted              no guard any more
--   newer               raised after the pass began, or of the other kind: it stays
--   not_loaded          no such shard
--   stale_epoch N       the shard has epoch N
--   bad_argument WORD   a malformed argument; nothing was done
local epoch, action, guard, pass_began_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
-- @include counts
if guard ~= 'recovering' and guard ~= 'rebuilding' then
  return 'bad_argument guard'
elseif action ~= 'raise' and action ~= 'lift' then
  return 'bad_argument action'
elseif not is_count(pass_began_ms) then
  return 'bad_argument pass_began_ms'
end
-- @include clock
-- @include epoch
local wrong = wrong_epoch(epoch)
if wrong then
  return wrong
end
-- @include token
local sale = redis.call('HMGET', KEYS[1], 'guard', 'guard_since_ms', 'gate', 'gate_version', 'stock')
local current = sale[1]
if action == 'raise' then
  if current == 'rebuilding' then
    guard = current
  end
  redis.call('HSET', KEYS[1], 'guard', guard, 'guard_since_ms', digits(now_ms),
    'token', token(epoch, sale[4], sale[3], guard, sale[5]))
  return 'raised'
elseif current == 'none' then
  return 'lifted'
elseif current ~= guard or tonumber(sale[2]) >= tonumber(pass_began_ms) then
  return 'newer'
end
redis.call('HSET', KEYS[1], 'guard', 'none', 'token', token(epoch, sale[4], sale[3], 'none', sale[5]))
return 'lifted'
