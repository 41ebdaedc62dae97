-- Version 1. Times are RFC 3339 text or, where named so, Unix milliseconds; durations are nanoseconds.
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
    counter_names    TEXT NOT NULL, -- JSON
    notes            TEXT NOT NULL, -- JSON
    environment      TEXT NOT NULL, -- JSON
    started          TEXT NOT NULL,
    writer           TEXT,          -- JSON, the process; null once it has closed the run
    committed_ms     INTEGER NOT NULL
);
CREATE INDEX run_by_label ON run (label) WHERE label IS NOT NULL;

CREATE TABLE event (
    run  INTEGER NOT NULL REFERENCES run (id),
    seq  INTEGER NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
-- For the list of runs, which must not read every counter of every run.
CREATE INDEX event_by_name ON event (name, run) WHERE name NOT IN ('counters', 'progress', 'note');

-- A rowid table: an index-organised one would push blobs over 1 kB into pages of their own.
CREATE TABLE second (
    run         INTEGER NOT NULL REFERENCES run (id),
    point       INTEGER NOT NULL,
    second      INTEGER NOT NULL,
    part        INTEGER NOT NULL, -- 0 ramp-up, 1 measured, 2 tail
    kind        INTEGER NOT NULL,
    seq         INTEGER NOT NULL, -- place of the event among those of the run
    committed   INTEGER NOT NULL,
    rolled_back INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    retries     INTEGER NOT NULL,
    latency_sum INTEGER NOT NULL, -- exact, in nanoseconds
    clamped     INTEGER NOT NULL,
    latency     BLOB              -- HdrHistogram V2, plain or compressed, in nanoseconds; null when empty
);
CREATE UNIQUE INDEX second_key ON second (run, point, second, part, kind);

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
    PRIMARY KEY (run, point, scope, kind)
) WITHOUT ROWID;

CREATE VIEW "window" AS
SELECT run, body ->> 'point' AS point, body ->> 'users' AS users, (body ->> 'elapsed') / 1e9 AS elapsed_s,
       body ->> 'client_headline' AS client_headline, body ->> 'server_headline' AS server_headline,
       (body ->> 'client_headline') * 60e9 / (body ->> 'elapsed') AS headline_per_minute
FROM event WHERE name = 'window';

CREATE VIEW error AS
SELECT run, body ->> 'point' AS point, body ->> 'second' AS second, body ->> 'kind' AS kind,
       body ->> 'class' AS class, body ->> 'code' AS code, body ->> 'message' AS message,
       body ->> 'retried' AS retried, body ->> 'count' AS count
FROM event WHERE name = 'errors';

CREATE VIEW audit AS
SELECT run, body ->> 'point' AS point, line.value ->> 'name' AS name, line.value ->> 'value' AS value,
       line.value ->> 'low' AS low, line.value ->> 'high' AS high, line.value ->> 'unit' AS unit,
       line.value ->> 'samples' AS samples, line.value ->> 'valid' AS valid
FROM event, json_each(body, '$.lines') AS line WHERE name = 'audit';
