-- Needs: record and released_other (declared). Gives: record, the buyer's if it answers this call, else false;
-- released_other, whether that is because it is released and another order: then it is as if there were none.
record = redis.call('HGET', KEYS[2], ARGV[1])
if record and string.byte(record) == 114 and string.sub(record, 3, 38) ~= string.sub(ARGV[2], 3, 38) then
  record, released_other = false, true
end
