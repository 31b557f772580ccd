-- Needs: ARGV[2] (record). Gives: quantity (text). It is read from the record itself, so that both can never
-- differ, and in canonical digits only: `tonumber` takes `1e0` and `0x1`, and a negative quantity adds stock.
local quantity = string.match(ARGV[2], '^([1-9]%d?%d?%d?) ', 40)
if not quantity then
  return 'bad_argument record'
end
