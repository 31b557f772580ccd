-- Sales: what was planned, which state they are in, and how many units they have.
--
-- Times are bigint milliseconds since 1970-01-01T00:00:00Z, by the database's clock unless they come from
-- an operator's plan or from Redis (reserved_at_ms). Ids compare by bytes (COLLATE "C"), as in the code.

-- Judged when a statement runs, not when its transaction began: now() accepts what waited behind a lock.
CREATE FUNCTION flashsale_now_ms() RETURNS bigint
    LANGUAGE sql VOLATILE PARALLEL SAFE
    RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
COMMENT ON FUNCTION flashsale_now_ms() IS 'Milliseconds since 1970 by clock_timestamp()';

CREATE TABLE sales (
    id               text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
    sku              text    NOT NULL CHECK (char_length(sku) BETWEEN 1 AND 128),
    name             text    NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
    planned_stock    bigint  NOT NULL CHECK (planned_stock BETWEEN 0 AND 1000000000),
    unit_price_minor bigint  NOT NULL CHECK (unit_price_minor BETWEEN 0 AND 9223372036854775),
    currency         text    NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    buyer_limit      integer NOT NULL CHECK (buyer_limit BETWEEN 1 AND 1000),
    opens_at_ms      bigint  NOT NULL CHECK (opens_at_ms >= 0),
    closes_at_ms     bigint  NOT NULL,
    payment_window_s bigint  NOT NULL CHECK (payment_window_s BETWEEN 5 AND 604800),
    shards           integer NOT NULL CHECK (shards BETWEEN 1 AND 64),
    status           text    NOT NULL CHECK (status IN
        ('draft', 'approved', 'open', 'suspended', 'closed', 'settled', 'withdrawn')),
    version          bigint  NOT NULL CHECK (version >= 1),
    epoch            bigint  NOT NULL CHECK (epoch >= 0),
    total            bigint  NOT NULL CHECK (total BETWEEN 0 AND 1000000000),
    available        bigint  NOT NULL,
    CONSTRAINT window_in_order CHECK (closes_at_ms > opens_at_ms),
    CONSTRAINT never_oversold CHECK (available BETWEEN 0 AND total)
)
-- One row takes every order's update: room for new versions on its own page.
WITH (fillfactor = 30);

COMMENT ON TABLE sales IS 'One flash sale each. available + units of its live orders = total';
COMMENT ON COLUMN sales.unit_price_minor IS 'Price of one unit in the currency''s minor unit';
COMMENT ON COLUMN sales.buyer_limit IS 'Units per buyer';
COMMENT ON COLUMN sales.opens_at_ms IS 'First moment at which it sells, ms since 1970';
COMMENT ON COLUMN sales.closes_at_ms IS 'First moment at which it no longer sells, ms since 1970';
COMMENT ON COLUMN sales.payment_window_s IS 'Seconds to pay, from settling';
COMMENT ON COLUMN sales.shards IS 'Slices of the stock in Redis';
COMMENT ON COLUMN sales.version IS 'Grows with plan, state and load; not with stock';
COMMENT ON COLUMN sales.epoch IS 'Of the newest load into Redis; 0 before the first';
COMMENT ON COLUMN sales.total IS 'Units: planned, plus restocks, less withdrawals';
COMMENT ON COLUMN sales.available IS 'Units that no live order owns';

CREATE TABLE loads (
    sale_id     text COLLATE "C" NOT NULL REFERENCES sales,
    epoch       bigint NOT NULL CHECK (epoch >= 1),
    shards      jsonb,
    began_at_ms bigint NOT NULL,
    fixed_at_ms bigint,
    PRIMARY KEY (sale_id, epoch),
    CONSTRAINT fixed_with_time CHECK ((shards IS NULL) = (fixed_at_ms IS NULL))
);
COMMENT ON TABLE loads IS 'Loads of a sale into Redis, one per epoch';
COMMENT ON COLUMN loads.shards IS 'Each shard''s total in units and the adjustments inside it; fixed once';

CREATE TABLE adjustments (
    seq            bigint GENERATED ALWAYS AS IDENTITY,
    sale_id        text COLLATE "C" NOT NULL REFERENCES sales,
    id             text COLLATE "C" NOT NULL CHECK (char_length(id) BETWEEN 1 AND 128),
    delta          bigint NOT NULL CHECK (delta <> 0 AND abs(delta) <= 1000000000),
    split          jsonb  NOT NULL,
    state          text   NOT NULL CHECK (state IN ('pending', 'applied', 'refused')),
    actor          jsonb  NOT NULL,
    recorded_at_ms bigint NOT NULL,
    finished_at_ms bigint,
    PRIMARY KEY (sale_id, id),
    CONSTRAINT finished_with_time CHECK ((state = 'pending') = (finished_at_ms IS NULL)),
    CONSTRAINT restock_never_refused CHECK (state <> 'refused' OR delta < 0)
);
COMMENT ON TABLE adjustments IS 'Stock changes by operators, each once, under the operator''s own id';
COMMENT ON COLUMN adjustments.delta IS 'Units; negative for a withdrawal. total contains every restock recorded and every withdrawal applied';
COMMENT ON COLUMN adjustments.split IS 'The change of each shard; sums to delta';
