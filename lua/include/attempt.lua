-- Needs: KEYS[4] (rate), ARGV[7] and ARGV[8] (attempts per window, its length). Counts an attempt of this
-- buyer; returns from the script when there were too many.
if KEYS[4] then
  local attempts = redis.call('INCR', KEYS[4])
  if attempts == 1 then
    redis.call('PEXPIRE', KEYS[4], ARGV[8])
  end
  if attempts > tonumber(ARGV[7]) then
    return 'rate_limited ' .. redis.call('PTTL', KEYS[4])
  end
end
