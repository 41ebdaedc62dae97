-- Version 5. Runs that belong together: repetitions, the sides of an A/B comparison, the cells of a study; and the
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
