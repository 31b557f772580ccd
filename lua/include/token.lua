-- Gives: token(epoch, version, gate, guard, stock), what `deduct` compares as a whole: EPOCH.VERSION while the
-- shard sells, with a `!` behind it when its stock is empty; else a word that no caller sends.
local function token(epoch_text, version_text, gate_word, guard_word, stock_text)
  if gate_word ~= 'open' or guard_word ~= 'none' then
    return '-'
  end
  return epoch_text .. '.' .. version_text .. (stock_text == '0' and '!' or '')
end
