local stock = tonumber(redis.call('GET', KEYS[1]))
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then
  return 2
end
if stock < tonumber(ARGV[2]) then
  return 0
end
redis.call('DECRBY', KEYS[1], ARGV[2])
redis.call('SADD', KEYS[2], ARGV[1])
return 1
