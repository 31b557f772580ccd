-- Needs: KEYS[4] (rate), ARGV[4] (numbers). Counts a further attempt of this buyer; returns from the script
-- when there were too many.
local max, window_ms = string.match(ARGV[4], ' (%d+) (%d+)$')
local attempts = redis.call('INCR', KEYS[4])
if attempts == 1 then
  redis.call('PEXPIRE', KEYS[4], window_ms)
end
if attempts > tonumber(max) then
  return 'rate_limited ' .. redis.call('PTTL', KEYS[4])
end
