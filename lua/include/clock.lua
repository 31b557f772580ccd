-- Gives: now_ms, the server's time in milliseconds; time, the same as texts of seconds and microseconds.
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
