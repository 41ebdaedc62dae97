-- The tables of a store. Times are RFC 3339 text or, where named so, Unix milliseconds; durations are nanoseconds.
CREATE TABLE run (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    workload         TEXT NOT NULL,
    target           TEXT NOT NULL,
    label            TEXT,
    spec_toml        TEXT NOT NULL,
    command          TEXT NOT NULL,
    seed             TEXT NOT NULL, -- decimal; an integer column would show the upper half as negative
    random_algorithm TEXT NOT NULL,
    kelvin_version   TEXT NOT NULL,
    kinds            TEXT NOT NULL, -- JSON [{"name", "headline"}]
    headline         TEXT NOT NULL,
    headline_per     TEXT NOT NULL, -- minute or second
    counter_names    TEXT NOT NULL, -- JSON
    notes            TEXT NOT NULL, -- JSON
    environment      TEXT NOT NULL, -- JSON
    started          TEXT NOT NULL,
    writer           TEXT,          -- JSON, the process; null once it has closed the run
    committed_ms     INTEGER NOT NULL
);
CREATE INDEX run_by_label ON run (label) WHERE label IS NOT NULL;

CREATE TABLE event (
    run       INTEGER NOT NULL REFERENCES run (id),
    seq       INTEGER NOT NULL,
    source_id INTEGER NOT NULL, -- who it is from: 0 the process that ran the load, others as the view source has them
    name      TEXT NOT NULL,
    body      TEXT NOT NULL,    -- JSON
    listed    INTEGER NOT NULL, -- 1 where the list of runs shows something of it; what must hold is shown where it does not
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
-- The list of runs reads these events and nothing else.
CREATE INDEX event_of_list ON event (run, seq) WHERE listed = 1;

-- A rowid table: an index-organised one would push blobs over 1 kB into pages of their own.
CREATE TABLE second (
    run         INTEGER NOT NULL REFERENCES run (id),
    point       INTEGER NOT NULL,
    second      INTEGER NOT NULL,
    part        INTEGER NOT NULL, -- 0 ramp-up, 1 measured, 2 tail
    kind        INTEGER NOT NULL,
    source_id   INTEGER NOT NULL, -- what several sources did in one second adds up
    seq         INTEGER NOT NULL, -- place of the event among those of the run
    committed   INTEGER NOT NULL,
    rolled_back INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    retries     INTEGER NOT NULL,
    latency_sum INTEGER NOT NULL, -- exact, in nanoseconds
    latency_max INTEGER NOT NULL, -- exact, in nanoseconds; 0 when there is none
    clamped     INTEGER NOT NULL,
    latency     BLOB              -- HdrHistogram V2, plain or compressed, in nanoseconds; null when empty
);
CREATE UNIQUE INDEX second_key ON second (run, point, second, part, kind, source_id);

CREATE TABLE total (
    run         INTEGER NOT NULL REFERENCES run (id),
    point       INTEGER NOT NULL,
    scope       INTEGER NOT NULL, -- 0 measured window, 1 everything
    kind        INTEGER NOT NULL,
    committed   INTEGER NOT NULL,
    rolled_back INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    retries     INTEGER NOT NULL,
    latency_sum INTEGER NOT NULL,
    latency_max INTEGER NOT NULL,
    PRIMARY KEY (run, point, scope, kind)
) WITHOUT ROWID;

CREATE VIEW "window" AS
SELECT event.run, body ->> 'point' AS point, body ->> 'users' AS users, (body ->> 'elapsed') / 1e9 AS elapsed_s,
       body ->> 'client_headline' AS client_headline, body ->> 'server_headline' AS server_headline,
       (body ->> 'client_headline') * 60e9 / (body ->> 'elapsed') AS headline_per_minute,
       (body ->> 'client_headline') * 1e9 / (body ->> 'elapsed') AS headline_per_second,
       run.headline, run.headline_per,
       body ->> '$.schedule.rate' AS asked_per_second, body ->> '$.schedule.due' AS due,
       body ->> '$.schedule.refused' AS refused, body ->> '$.schedule.waiting' AS waiting
FROM event JOIN run ON run.id = event.run WHERE name = 'window';

-- The sources beside the process that ran the load.
CREATE VIEW source AS
SELECT run, body ->> 'id' AS source_id, body ->> '$.source.generator' AS generator,
       body ->> '$.source.tenant' AS tenant, body ->> '$.source.host' AS host
FROM event WHERE name = 'source';

CREATE VIEW error AS
SELECT run, source_id, body ->> 'point' AS point, body ->> 'second' AS second, body ->> 'kind' AS kind,
       body ->> 'class' AS class, body ->> 'code' AS code, body ->> 'message' AS message,
       body ->> 'retried' AS retried, body ->> 'count' AS count
FROM event WHERE name = 'errors';

CREATE VIEW audit AS
SELECT run, body ->> 'point' AS point, line.value ->> 'name' AS name, line.value ->> 'value' AS value,
       line.value ->> 'low' AS low, line.value ->> 'high' AS high, line.value ->> 'unit' AS unit,
       line.value ->> 'samples' AS samples, line.value ->> 'valid' AS valid
FROM event, json_each(body, '$.lines') AS line WHERE name = 'audit';

-- What the number of a kind in the tables second and total is: a transaction type, its response times, a statement.
CREATE VIEW series AS
SELECT run.id AS run, line.key AS kind, line.value ->> 'name' AS name, line.value ->> 'headline' AS headline,
       CASE json_type(line.value, '$.role') WHEN 'object' THEN
           (SELECT key FROM json_each(line.value, '$.role')) ELSE coalesce(line.value ->> 'role', 'transaction')
       END AS role,
       coalesce(line.value ->> '$.role.response.of', line.value ->> '$.role.statement.of') AS of_kind
FROM run, json_each(run.kinds) AS line;

-- Events of one point and second add up, but for those who wait.
CREATE VIEW arrivals AS
SELECT run, source_id, body ->> 'point' AS point, body ->> 'second' AS second, body ->> 'due' AS due,
       body ->> 'refused' AS refused, body ->> 'waiting' AS waiting
FROM event WHERE name = 'arrivals';

-- What was seen of host and database: the values of the metrics, and what sessions were doing. Everything
-- else that observers send stays in event, under the name 'observed'.

-- A rowid table, as second is: an index-organised one would push values over 1 kB into pages of their own.
CREATE TABLE reading (
    run       INTEGER NOT NULL REFERENCES run (id),
    seq       INTEGER NOT NULL, -- place of the event among those of the run
    source_id INTEGER NOT NULL,
    at        INTEGER NOT NULL, -- nanoseconds on the run's clock
    first     INTEGER NOT NULL, -- place of the first metric, as the view metric has it
    body      BLOB NOT NULL     -- the values: see values.rs
);
CREATE UNIQUE INDEX reading_key ON reading (run, seq);

CREATE TABLE waits (
    run        INTEGER NOT NULL REFERENCES run (id),
    seq        INTEGER NOT NULL,
    source_id  INTEGER NOT NULL,
    at         INTEGER NOT NULL, -- nanoseconds on the run's clock
    looks      INTEGER NOT NULL, -- looks at the sessions that are summed up here
    lock_looks INTEGER NOT NULL, -- looks at the locks
    seen       TEXT NOT NULL,    -- JSON [[place in the view wait_group, sessions summed over the looks], …]
    rows       TEXT NOT NULL     -- JSON [[relation, sessions that waited for a row of it, summed], …]
);
CREATE UNIQUE INDEX waits_key ON waits (run, seq);

CREATE VIEW metric AS
SELECT run, source_id, (body ->> 'first') + line.key AS place, body ->> 'source' AS source, line.value ->> 'name' AS name,
       line.value ->> 'unit' AS unit, line.value ->> 'help' AS help
FROM event, json_each(body, '$.metrics') AS line WHERE name = 'observed' AND body ->> 'observation' = 'observer';

CREATE VIEW wait_group AS
SELECT run, source_id, (body ->> 'first') + line.key AS place, line.value ->> 'backend' AS backend,
       line.value ->> 'class' AS class, line.value ->> 'event' AS event, line.value ->> 'query' AS query
FROM event, json_each(body, '$.groups') AS line WHERE name = 'observed' AND body ->> 'observation' = 'wait-groups';

-- One row per moment and state: the average number of sessions in it.
CREATE VIEW wait AS
SELECT waits.run, waits.source_id, at / 1e9 AS at_s, backend, class, event, query, (line.value ->> 1) * 1.0 / looks AS sessions
FROM waits, json_each(seen) AS line
JOIN wait_group ON wait_group.run = waits.run AND wait_group.place = line.value ->> 0;

-- The same for those that waited for a row.
CREATE VIEW row_wait AS
SELECT run, source_id, at / 1e9 AS at_s, line.value ->> 0 AS relation, (line.value ->> 1) * 1.0 / lock_looks AS sessions
FROM waits, json_each(rows) AS line;

-- One row each, as last reported: its end comes in a second event.
CREATE VIEW occurrence AS
SELECT run, source_id, body ->> 'id' AS id, body ->> 'kind' AS kind, body ->> 'subject' AS subject,
       (body ->> 'from') / 1e9 AS from_s, (body ->> 'to') / 1e9 AS to_s, body -> 'figures' AS figures, max(seq) AS seq
FROM event WHERE name = 'observed' AND body ->> 'observation' = 'occurrence' GROUP BY run, body ->> 'id';

-- What a host could do when nothing was asked of it (`kelvin doctor`).
CREATE TABLE baseline (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    taken_ms INTEGER NOT NULL, -- Unix milliseconds
    host     TEXT NOT NULL,
    body     TEXT NOT NULL     -- JSON
);
CREATE INDEX baseline_by_host ON baseline (host, id);

-- Runs that belong together: repetitions, the sides of an A/B comparison, the cells of a study; and the
-- branch and the testbed under which a run stands in the history.
CREATE TABLE run_group (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    kind       TEXT NOT NULL,    -- 'repeat', 'ab', 'study'
    name       TEXT,
    created_ms INTEGER NOT NULL, -- Unix milliseconds
    body       TEXT NOT NULL     -- JSON: the plan, as its writer wrote it
);
CREATE TABLE member (
    run       INTEGER PRIMARY KEY,
    run_group INTEGER NOT NULL REFERENCES run_group (id),
    place     INTEGER NOT NULL, -- order in time within the group, from 0; a replaced run keeps its own
    block     INTEGER NOT NULL, -- from 0
    treatment TEXT NOT NULL,    -- '' where there is one only
    void      TEXT              -- why the run does not count; null when it does
);
CREATE INDEX member_by_group ON member (run_group, place);
CREATE TABLE history (
    run     INTEGER PRIMARY KEY,
    branch  TEXT NOT NULL,
    testbed TEXT NOT NULL
);
CREATE INDEX history_by_branch ON history (branch, testbed, run);

-- What each run was judged to be when it ended. It follows from the run's events, and is here for the lists.
CREATE TABLE judgement (
    run   INTEGER PRIMARY KEY,
    rules INTEGER NOT NULL, -- the rules by which it was judged
    body  TEXT NOT NULL     -- JSON: state and reasons
);

-- Where a run that was imported comes from.
CREATE TABLE origin (
    run         INTEGER PRIMARY KEY,
    host        TEXT,             -- the machine that exported it; null where it was taken from a store that is no export
    store       TEXT NOT NULL,    -- the name of the store's file there
    number      INTEGER NOT NULL, -- the run's number there
    imported_ms INTEGER NOT NULL  -- Unix milliseconds
);

-- One row in a file that an export made, none elsewhere.
CREATE TABLE export (
    exported_ms    INTEGER NOT NULL, -- Unix milliseconds
    host           TEXT NOT NULL,
    store          TEXT NOT NULL,    -- the name of the store's file
    kelvin_version TEXT NOT NULL,
    digest         TEXT NOT NULL     -- SHA-256 over everything else: see transfer/content.rs
);
