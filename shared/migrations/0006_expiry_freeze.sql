-- After a restore to an earlier point, payments that were answered before may be missing.

ALTER TABLE sales ADD COLUMN expiry_frozen_at_ms bigint CHECK (expiry_frozen_at_ms >= 0);
COMMENT ON COLUMN sales.expiry_frozen_at_ms IS 'Since when nothing of the sale expires, ms since 1970; null: orders expire. Set when the database went back in time, cleared by a person once payments were sent again';
