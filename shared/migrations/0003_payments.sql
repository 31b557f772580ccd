-- Money that came in, and money that is due back.

CREATE TABLE payments (
    payment_id     text COLLATE "C" PRIMARY KEY CHECK (char_length(payment_id) BETWEEN 1 AND 128),
    sale_id        text COLLATE "C" NOT NULL,
    order_id       uuid   NOT NULL,
    amount_minor   bigint NOT NULL CHECK (amount_minor >= 0),
    currency       text   NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    received_at_ms bigint NOT NULL
);
COMMENT ON TABLE payments IS 'Every payment that a provider reported, once; the order may be unknown here';
COMMENT ON COLUMN payments.amount_minor IS 'In the currency''s minor unit';

CREATE TABLE refunds (
    payment_id    text COLLATE "C" PRIMARY KEY REFERENCES payments,
    sale_id       text COLLATE "C" NOT NULL,
    order_id      uuid   NOT NULL,
    amount_minor  bigint NOT NULL CHECK (amount_minor >= 0),
    currency      text   NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    reason        text   NOT NULL CHECK (reason IN
        ('order_closed', 'already_paid', 'wrong_amount', 'unknown_order', 'order_refunded')),
    created_at_ms bigint NOT NULL,
    done_at_ms    bigint
);
COMMENT ON TABLE refunds IS 'Payments to return, as work to do; a payment without a row here paid its order';

CREATE INDEX refunds_by_age ON refunds (created_at_ms, payment_id);
CREATE INDEX refunds_due ON refunds (sale_id, created_at_ms, payment_id) WHERE done_at_ms IS NULL;
