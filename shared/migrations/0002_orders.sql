-- Orders own units; movements say when units went out and came back.

CREATE TABLE orders (
    id             uuid PRIMARY KEY,
    sale_id        text COLLATE "C" NOT NULL REFERENCES sales,
    buyer_id       text COLLATE "C" NOT NULL CHECK (char_length(buyer_id) BETWEEN 1 AND 128),
    quantity       integer NOT NULL CHECK (quantity BETWEEN 1 AND 1000),
    price_minor    bigint  NOT NULL CHECK (price_minor >= 0),
    currency       text    NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    status         text    NOT NULL CHECK (status IN
        ('awaiting_payment', 'paid', 'cancelled', 'expired', 'refunded', 'rejected')),
    reject_reason  text CHECK (reject_reason IN ('no_stock', 'other_order', 'sale_over', 'void')),
    reserved_at_ms bigint  NOT NULL CHECK (reserved_at_ms >= 0),
    body_hash      text    NOT NULL CHECK (body_hash ~ '^[0-9a-f]{16}$'),
    settled_at_ms  bigint  NOT NULL,
    pay_by_ms      bigint  NOT NULL,
    paid_at_ms     bigint,
    paid_by        text COLLATE "C",
    closed_at_ms   bigint,
    released_epoch bigint CHECK (released_epoch >= 0),
    CONSTRAINT rejected_with_reason CHECK ((status = 'rejected') = (reject_reason IS NOT NULL)),
    CONSTRAINT paid_with_payment CHECK
        ((status IN ('paid', 'refunded')) = (paid_at_ms IS NOT NULL AND paid_by IS NOT NULL)),
    CONSTRAINT closed_with_time CHECK
        ((status IN ('awaiting_payment', 'paid')) = (closed_at_ms IS NULL)),
    CONSTRAINT live_is_not_released CHECK
        (released_epoch IS NULL OR status NOT IN ('awaiting_payment', 'paid'))
);
COMMENT ON TABLE orders IS 'One buyer''s units in one sale; live (awaiting_payment, paid) orders own them';
COMMENT ON COLUMN orders.quantity IS 'Units';
COMMENT ON COLUMN orders.price_minor IS 'Price of all units together, in the currency''s minor unit';
COMMENT ON COLUMN orders.reserved_at_ms IS 'When Redis reserved it, by Redis''s clock, ms since 1970';
COMMENT ON COLUMN orders.body_hash IS 'First 8 bytes of SHA-256 of what was asked for, in hex';
COMMENT ON COLUMN orders.pay_by_ms IS 'First moment at which it can no longer be paid, ms since 1970';
COMMENT ON COLUMN orders.paid_by IS 'The payment that paid it';
COMMENT ON COLUMN orders.released_epoch IS 'Epoch in which Redis acknowledged the release; null before';

CREATE UNIQUE INDEX one_live_order_per_buyer ON orders (sale_id, buyer_id)
    WHERE status IN ('awaiting_payment', 'paid');
CREATE INDEX orders_live ON orders (sale_id, id)
    WHERE status IN ('awaiting_payment', 'paid');
CREATE INDEX orders_unreleased ON orders (sale_id, id)
    WHERE released_epoch IS NULL AND status NOT IN ('awaiting_payment', 'paid');
CREATE INDEX orders_overdue ON orders (sale_id, pay_by_ms, id)
    WHERE status = 'awaiting_payment';
CREATE INDEX orders_of_buyer ON orders (sale_id, buyer_id, settled_at_ms, id);

CREATE FUNCTION flashsale_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % refused: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0]
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER closed_orders_never_live_again BEFORE UPDATE ON orders FOR EACH ROW
    WHEN (OLD.status NOT IN ('awaiting_payment', 'paid') AND NEW.status <> OLD.status)
    EXECUTE FUNCTION flashsale_refuse('a closed order never lives again');
CREATE TRIGGER orders_keep_what_they_are BEFORE UPDATE ON orders FOR EACH ROW
    WHEN ((NEW.id, NEW.sale_id, NEW.buyer_id, NEW.quantity)
          IS DISTINCT FROM (OLD.id, OLD.sale_id, OLD.buyer_id, OLD.quantity))
    EXECUTE FUNCTION flashsale_refuse('an order keeps its id, sale, buyer and quantity');

CREATE TABLE stock_movements (
    order_id uuid    NOT NULL REFERENCES orders,
    kind     text    NOT NULL CHECK (kind IN ('take', 'give_back')),
    sale_id  text COLLATE "C" NOT NULL,
    units    integer NOT NULL CHECK (units > 0),
    at_ms    bigint  NOT NULL,
    PRIMARY KEY (order_id, kind)
);
COMMENT ON TABLE stock_movements IS 'Units taken by an order and given back by it, each at most once';
