-- Gives: wrong_epoch(epoch), the reply for a caller whose epoch is not the shard's, or nil.
local function wrong_epoch(epoch)
  local loaded = redis.call('HGET', KEYS[1], 'epoch')
  if not loaded then
    return 'not_loaded'
  elseif loaded ~= epoch then
    return 'stale_epoch ' .. loaded
  end
end
