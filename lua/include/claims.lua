-- Needs: now_ms, KEYS[2] (orders). Gives: read_record(text), a record's words; move_claim(buyer, record, call),
-- which gives the claim on a held record to a call if it has it already or nobody has, and returns the record,
-- or nil and for how many milliseconds another call has it. A held record stays held, so the
-- outbox is as it was.
local CLAIM_FIRST_MS = 5000
local CLAIM_LATER_MIN_MS = 30000
local CLAIM_LATER_MAX_MS = 300000

local function read_record(text)
  local state, order, hash, holder, quantity, seconds, micros, until_ms =
    string.match(text, '^(%a) (%S+) (%S+) (%S+) (%d+) (%d+) (%d+) ?(%d*)$')
  return {
    state = state,
    order = order,
    hash = hash,
    holder = holder,
    tail = string.format('%s %s %s', quantity, seconds, micros),
    reserved_ms = seconds * 1000 + math.floor(micros / 1000),
    until_ms = tonumber(until_ms),
  }
end

local function move_claim(buyer, record, call)
  local words = read_record(record)
  local ends_ms = words.until_ms or words.reserved_ms + CLAIM_FIRST_MS
  if now_ms < ends_ms then
    if words.holder == call then
      return record
    end
    return nil, ends_ms - now_ms
  end
  local age_ms = now_ms - words.reserved_ms
  local length_ms = math.max(CLAIM_LATER_MIN_MS, math.min(CLAIM_LATER_MAX_MS, age_ms))
  local moved = string.format('h %s %s %s %s %.0f', words.order, words.hash, call, words.tail, now_ms + length_ms)
  redis.call('HSET', KEYS[2], buyer, moved)
  return moved
end
