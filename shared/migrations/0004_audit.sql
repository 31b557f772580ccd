-- Who did what, when and why. Written with the change, in its transaction; never changed.

CREATE TABLE audit (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sale_id    text COLLATE "C" NOT NULL,
    at_ms      bigint NOT NULL,
    actor_id   text   NOT NULL,
    reason     text   NOT NULL,
    request_id text   NOT NULL,
    action     text   NOT NULL,
    before     jsonb  NOT NULL,
    after      jsonb  NOT NULL
);
COMMENT ON TABLE audit IS 'Operators'' and repair''s changes; rows are only ever added';
CREATE INDEX audit_of_sale ON audit (sale_id, seq);

CREATE TRIGGER audit_is_immutable BEFORE UPDATE OR DELETE ON audit FOR EACH ROW
    EXECUTE FUNCTION flashsale_refuse('the audit is only ever added to');
CREATE TRIGGER audit_is_not_truncated BEFORE TRUNCATE ON audit FOR EACH STATEMENT
    EXECUTE FUNCTION flashsale_refuse('the audit is only ever added to');
