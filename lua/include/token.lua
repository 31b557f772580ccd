-- Gives: token(epoch, version, gate, guard), what `deduct` compares as a whole: EPOCH.VERSION while the shard
-- sells, else a word that no caller sends.
local function token(epoch_text, version_text, gate_word, guard_word)
  if gate_word == 'open' and guard_word == 'none' then
    return epoch_text .. '.' .. version_text
  end
  return '-'
end
