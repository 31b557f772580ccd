-- Needs: is_count, digits. Gives: stock and debt (numbers, read from the shard); give(units), which puts
-- units back, debt first; take_owed(units), which takes them whether or not they are there and returns what
-- became debt; save_stock(field, value...), which writes them back with the token, and more fields. Returns
-- from the script when a counter is not one.
local counters = redis.call('HMGET', KEYS[1], 'stock', 'debt', 'total', 'token', 'unheld')
if not (is_count(counters[1]) and is_count(counters[2]) and is_count(counters[3])
  and is_count(counters[5])) then
  return 'bad_state'
end
local stock, debt = tonumber(counters[1]), tonumber(counters[2])

local function give(units)
  local paid = math.min(units, debt)
  debt = debt - paid
  stock = stock + units - paid
end

local function take_owed(units)
  local taken = math.min(units, stock)
  stock = stock - taken
  debt = debt + units - taken
  return units - taken
end

local function save_stock(...)
  local token = string.gsub(counters[4], '!$', '')
  if stock == 0 and token ~= '-' then
    token = token .. '!'
  end
  redis.call('HSET', KEYS[1], 'stock', digits(stock), 'debt', digits(debt), 'token', token, ...)
end
