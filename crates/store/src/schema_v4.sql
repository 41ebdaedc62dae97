-- Version 4. What a host could do when nothing was asked of it (`kelvin doctor`).
CREATE TABLE baseline (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    taken_ms INTEGER NOT NULL, -- Unix milliseconds
    host     TEXT NOT NULL,
    body     TEXT NOT NULL     -- JSON
);
CREATE INDEX baseline_by_host ON baseline (host, id);
