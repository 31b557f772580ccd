#!lua
-- route: says where a sale's shards are; it only rises.
--
-- KEYS
--   1  route   string: "SHARDS EPOCH"
-- ARGV
--   1  shards  how many
--   2  epoch   under which they were loaded
-- REPLIES
--   raised              the route is this one now
--   already             it had this epoch
--   behind N            it has epoch N, which is higher
--   bad_argument WORD   a malformed argument; nothing was done
local shards, epoch = ARGV[1], ARGV[2]
-- @include counts
if not (is_count(shards) and is_count(epoch)) then
  return 'bad_argument number'
end
local current = redis.call('GET', KEYS[1])
local current_epoch = current and string.match(current, '^%d+ (%d+)$')
if current_epoch and tonumber(current_epoch) > tonumber(epoch) then
  return 'behind ' .. current_epoch
elseif current_epoch == epoch then
  return 'already'
end
redis.call('SET', KEYS[1], shards .. ' ' .. epoch)
return 'raised'
