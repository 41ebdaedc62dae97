-- Version 2. Runs that count their headline per second; open loops; timed statements.
ALTER TABLE run ADD COLUMN headline_per TEXT NOT NULL DEFAULT 'minute'; -- minute or second

-- Arrivals come once a second and are not for the list of runs either.
DROP INDEX event_by_name;
CREATE INDEX event_by_name ON event (name, run) WHERE name NOT IN ('counters', 'progress', 'note', 'arrivals');

DROP VIEW "window";
CREATE VIEW "window" AS
SELECT event.run, body ->> 'point' AS point, body ->> 'users' AS users, (body ->> 'elapsed') / 1e9 AS elapsed_s,
       body ->> 'client_headline' AS client_headline, body ->> 'server_headline' AS server_headline,
       (body ->> 'client_headline') * 60e9 / (body ->> 'elapsed') AS headline_per_minute,
       (body ->> 'client_headline') * 1e9 / (body ->> 'elapsed') AS headline_per_second,
       run.headline, run.headline_per,
       body ->> '$.schedule.rate' AS asked_per_second, body ->> '$.schedule.due' AS due,
       body ->> '$.schedule.refused' AS refused, body ->> '$.schedule.waiting' AS waiting
FROM event JOIN run ON run.id = event.run WHERE name = 'window';

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
SELECT run, body ->> 'point' AS point, body ->> 'second' AS second, body ->> 'due' AS due,
       body ->> 'refused' AS refused, body ->> 'waiting' AS waiting
FROM event WHERE name = 'arrivals';
