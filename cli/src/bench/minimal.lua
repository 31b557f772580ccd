-- minimal: what a check-and-decrement script does at the least: no retry, no order, no outbox, no window.
--
-- KEYS
--   1  stock     string: free units
--   2  buyers    set: who has bought
-- ARGV
--   1  buyer     id
--   2  quantity  units
-- REPLIES
--   1   taken
--   0   sold out
--   -1  bought before
local stock = tonumber(redis.call('GET', KEYS[1]))
if stock < tonumber(ARGV[2]) then
  return 0
end
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then
  return -1
end
redis.call('DECRBY', KEYS[1], ARGV[2])
redis.call('SADD', KEYS[2], ARGV[1])
return 1
