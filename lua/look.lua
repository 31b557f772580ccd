#!lua flags=no-writes
-- look: what is known of a sale before any shard is asked, with the server's clock.
--
-- KEYS
--   1  route   string: "SHARDS EPOCH"
--   2  unpaid  string: units not yet paid, advisory
-- ARGV
-- REPLIES
--   look NOW_MS UNPAID [SHARDS EPOCH]  the last two only where there is a route
-- @include clock
-- @include counts
local route = redis.call('GET', KEYS[1])
local unpaid = redis.call('GET', KEYS[2])
return 'look ' .. digits(now_ms) .. ' ' .. (unpaid or '0') .. (route and ' ' .. route or '')
