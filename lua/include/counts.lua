-- Gives: is_count(text), whether text is a whole number from 0 in canonical digits, exact in a double;
-- digits(number), such a number as text.
-- `tonumber` alone takes `1e0`, `0x1` and ` 1`, on which HINCRBY would fail half-way.
local function is_count(text)
  return text ~= nil and #text <= 15 and (text == '0' or string.find(text, '^[1-9]%d*$') ~= nil)
end

local function digits(number)
  return string.format('%.0f', number)
end
