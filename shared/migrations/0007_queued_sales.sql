-- Sales without Redis: SQL alone decides, behind the queue.

-- The id of a queued sale begins with 'queued-', and no other's does: the functions go by the id. An existing
-- sale of such an id would change its kind without anybody's decision, so this fails where there is one. A build
-- that does not know the column creates sales for Redis only.
ALTER TABLE sales ADD COLUMN admission text NOT NULL DEFAULT 'redis'
    CHECK (admission IN ('redis', 'queue')),
    ADD CONSTRAINT id_says_admission CHECK ((admission = 'queue') = (id LIKE 'queued-%'));
ALTER TABLE sales ADD COLUMN stopped_at_ms bigint CHECK (stopped_at_ms >= 0);
COMMENT ON COLUMN sales.admission IS 'Who admits buyers: redis, or queue (SQL alone). Fixed by the id';
COMMENT ON COLUMN sales.stopped_at_ms IS 'Of a queued sale that is suspended or over: requests received since then are refused, ms since 1970';

ALTER TABLE orders DROP CONSTRAINT orders_reject_reason_check,
    ADD CONSTRAINT orders_reject_reason_check CHECK (reject_reason IN
        ('no_stock', 'other_order', 'sale_over', 'void', 'not_open', 'paused', 'over_limit'));
COMMENT ON COLUMN orders.reserved_at_ms IS 'When Redis reserved it, by Redis''s clock; of a queued sale, when deduct received the request, by its clock; ms since 1970';
