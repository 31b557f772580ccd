-- The scripts in lua/ run inside Redis and Valkey (Lua 5.1). A line `-- @include NAME` stands for the text of
-- lua/include/NAME.lua, so what a fragment gives is read-only to the scripts, and what it needs to the fragment.
std = "min"
max_line_length = 120
read_globals = {
  "redis", "KEYS", "ARGV", "unpack",
  "now_ms", "wrong_epoch", "is_count", "digits", "counters", "stock", "debt", "give", "take_owed", "save_stock", "token",
  "time",
  "read_record", "move_claim",
}
-- Given to the script that includes them, so not used in the fragment itself.
files["lua/include/*.lua"] = { ignore = { "211", "221", "241" } }
-- An if that holds only an include.
files["lua/deduct.lua"] = { ignore = { "542", "221" } }
-- What a fragment gives by setting a local of the script.
files["lua/include/mark.lua"] = { globals = { "repeated" } }
files["lua/include/record.lua"] = { globals = { "record", "released_other" } }
