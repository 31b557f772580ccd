-- Needs: KEYS[3] (seen), ARGV[5] (seen_bit), repeated (declared). Gives: repeated, whether this buyer, or one with
-- the same bit, has tried before; nil when no limit is in force. A first attempt then costs one bit and no key.
repeated = KEYS[3] and redis.call('SETBIT', KEYS[3], ARGV[5], 1) == 1
