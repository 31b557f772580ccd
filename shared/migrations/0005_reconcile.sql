-- Reconcile's memory: who runs, what was seen once, where walks stopped.

CREATE TABLE reconcile_runs (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    began_at_ms     bigint NOT NULL,
    heartbeat_at_ms bigint NOT NULL,
    ended_at_ms     bigint,
    report          jsonb  NOT NULL
);
COMMENT ON TABLE reconcile_runs IS 'Runs of reconcile; one without an end runs, or died';

CREATE TABLE reconcile_lease (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    holder   text,
    run_id   bigint,
    until_ms bigint NOT NULL
);
COMMENT ON TABLE reconcile_lease IS 'One row: who may run reconcile, until when (ms since 1970)';
INSERT INTO reconcile_lease (holder, run_id, until_ms) VALUES (NULL, NULL, 0);

CREATE TABLE sightings (
    sale_id  text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL,
    since_ms bigint NOT NULL,
    PRIMARY KEY (sale_id, key)
);
COMMENT ON TABLE sightings IS 'Findings of the last pass over a sale, and since when each was seen without a gap';

CREATE TABLE walk_cursors (
    sale_id text COLLATE "C" NOT NULL,
    walk    text COLLATE "C" NOT NULL,
    cursor  text NOT NULL,
    PRIMARY KEY (sale_id, walk)
);
COMMENT ON TABLE walk_cursors IS 'Where a paged walk over a sale stopped';
