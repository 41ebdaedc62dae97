-- Version 3. What was seen of host and database: the values of the metrics, and what sessions were doing. Everything
-- else that observers send stays in event, under the name 'observed'.

-- A rowid table, as second is: an index-organised one would push values over 1 kB into pages of their own.
CREATE TABLE reading (
    run   INTEGER NOT NULL REFERENCES run (id),
    seq   INTEGER NOT NULL, -- place of the event among those of the run
    at    INTEGER NOT NULL, -- nanoseconds on the run's clock
    first INTEGER NOT NULL, -- place of the first metric, as the view metric has it
    body  BLOB NOT NULL     -- the values: see values.rs
);
CREATE UNIQUE INDEX reading_key ON reading (run, seq);

CREATE TABLE waits (
    run        INTEGER NOT NULL REFERENCES run (id),
    seq        INTEGER NOT NULL,
    at         INTEGER NOT NULL, -- nanoseconds on the run's clock
    looks      INTEGER NOT NULL, -- looks at the sessions that are summed up here
    lock_looks INTEGER NOT NULL, -- looks at the locks
    seen       TEXT NOT NULL,    -- JSON [[place in the view wait_group, sessions summed over the looks], …]
    rows       TEXT NOT NULL     -- JSON [[relation, sessions that waited for a row of it, summed], …]
);
CREATE UNIQUE INDEX waits_key ON waits (run, seq);

-- The list of runs reads these events and nothing else. Its query has the same condition word by word: only then does
-- SQLite see that the index serves, which it did not with the condition of the version before.
DROP INDEX event_by_name;
CREATE INDEX event_of_list ON event (run, seq) WHERE name IN ('phase', 'window', 'audit', 'invariant', 'check', 'errors', 'maximum-rate', 'finished');

CREATE VIEW metric AS
SELECT run, (body ->> 'first') + line.key AS place, body ->> 'source' AS source, line.value ->> 'name' AS name,
       line.value ->> 'unit' AS unit, line.value ->> 'help' AS help
FROM event, json_each(body, '$.metrics') AS line WHERE name = 'observed' AND body ->> 'observation' = 'observer';

CREATE VIEW wait_group AS
SELECT run, (body ->> 'first') + line.key AS place, line.value ->> 'backend' AS backend,
       line.value ->> 'class' AS class, line.value ->> 'event' AS event, line.value ->> 'query' AS query
FROM event, json_each(body, '$.groups') AS line WHERE name = 'observed' AND body ->> 'observation' = 'wait-groups';

-- One row per moment and state: the average number of sessions in it.
CREATE VIEW wait AS
SELECT waits.run, at / 1e9 AS at_s, backend, class, event, query, (line.value ->> 1) * 1.0 / looks AS sessions
FROM waits, json_each(seen) AS line
JOIN wait_group ON wait_group.run = waits.run AND wait_group.place = line.value ->> 0;

-- The same for those that waited for a row.
CREATE VIEW row_wait AS
SELECT run, at / 1e9 AS at_s, line.value ->> 0 AS relation, (line.value ->> 1) * 1.0 / lock_looks AS sessions
FROM waits, json_each(rows) AS line;

-- One row each, as it was last told: its end comes in a second event.
CREATE VIEW occurrence AS
SELECT run, body ->> 'id' AS id, body ->> 'kind' AS kind, body ->> 'subject' AS subject,
       (body ->> 'from') / 1e9 AS from_s, (body ->> 'to') / 1e9 AS to_s, body -> 'figures' AS figures, max(seq) AS seq
FROM event WHERE name = 'observed' AND body ->> 'observation' = 'occurrence' GROUP BY run, body ->> 'id';
