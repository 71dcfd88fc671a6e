-- Which log belongs to this file; package wal says how. The first table: page 2.
CREATE TABLE generation (
  only   INTEGER PRIMARY KEY CHECK (only = 1),
  tag    BLOB NOT NULL CHECK (length(tag) = 16),
  before BLOB NOT NULL CHECK (length(before) = 16)
) STRICT;

INSERT INTO generation (only, tag, before) VALUES (1, zeroblob(16), zeroblob(16));

-- What a row says of a change or an event is computed from the JSON that it
-- holds, so that the two cannot disagree.

CREATE TABLE changes (
  id          TEXT PRIMARY KEY CHECK (id <> '' AND id = json_extract(body, '$.id')),
  body        TEXT NOT NULL,
  state       TEXT NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.state')) STORED
              CHECK (state IN ('proposed', 'planned', 'denied', 'awaiting_approval', 'approved', 'rejected',
                'expired', 'cancelled', 'claimed', 'executing', 'verifying', 'done', 'failed', 'unverified',
                'unknown', 'rolling_back', 'rolled_back', 'rollback_failed')),
  version     INTEGER NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.version')) STORED CHECK (version >= 0),
  requester   TEXT NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.requested_by.name')) STORED CHECK (requester <> ''),
  client_key  TEXT NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.client_key')) STORED,
  rollback_of TEXT NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.request.rollback_of')) STORED,
  run_id      TEXT NOT NULL GENERATED ALWAYS AS (json_extract(body, '$.run_id')) STORED,
  -- What was handed to the executor has a run.
  CHECK (run_id <> '' OR state IN ('proposed', 'planned', 'denied', 'awaiting_approval', 'approved', 'rejected',
    'expired', 'cancelled', 'failed'))
) STRICT;

CREATE UNIQUE INDEX changes_client_key ON changes (requester, client_key) WHERE client_key <> '';
CREATE INDEX changes_state ON changes (state, id);
CREATE INDEX changes_rollback_of ON changes (rollback_of, id) WHERE rollback_of <> '';

CREATE TRIGGER changes_stay BEFORE DELETE ON changes
BEGIN SELECT RAISE(ABORT, 'a change is never deleted'); END;

CREATE TRIGGER changes_keep_their_origin BEFORE UPDATE ON changes
WHEN json_extract(NEW.body, '$.id') <> OLD.id
  OR json_extract(NEW.body, '$.requested_by.name') <> OLD.requester
  OR json_extract(NEW.body, '$.client_key') <> OLD.client_key
  OR json_extract(NEW.body, '$.request.rollback_of') <> OLD.rollback_of
BEGIN SELECT RAISE(ABORT, 'what a change was when it was proposed never changes'); END;

CREATE TABLE events (
  sequence  INTEGER PRIMARY KEY CHECK (sequence = json_extract(line, '$.sequence')),
  line      TEXT NOT NULL,
  event_id  TEXT NOT NULL GENERATED ALWAYS AS (json_extract(line, '$.event_id')) STORED UNIQUE CHECK (event_id <> ''),
  change_id TEXT NOT NULL GENERATED ALWAYS AS (json_extract(line, '$.change_id')) STORED
) STRICT;

CREATE INDEX events_change_id ON events (change_id, sequence);

CREATE TRIGGER events_have_no_gap BEFORE INSERT ON events
WHEN NEW.sequence <> (SELECT coalesce(max(sequence), 0) + 1 FROM events)
BEGIN SELECT RAISE(ABORT, 'events follow one another without gaps'); END;

-- The Merkle tree of all events, in its compact form.
CREATE TABLE tree (
  one   INTEGER PRIMARY KEY CHECK (one = 1),
  size  INTEGER NOT NULL CHECK (size >= 0),
  peaks BLOB NOT NULL
) STRICT;

INSERT INTO tree (one, size, peaks) VALUES (1, 0, x'');

CREATE TRIGGER tree_grows_with_events BEFORE UPDATE ON tree
WHEN NEW.size <> OLD.size + 1 OR NEW.size <> (SELECT max(sequence) FROM events)
BEGIN SELECT RAISE(ABORT, 'the tree has one leaf for each event'); END;

CREATE TRIGGER tree_stays BEFORE DELETE ON tree
BEGIN SELECT RAISE(ABORT, 'the tree is never deleted'); END;

CREATE TRIGGER events_grow_the_tree BEFORE INSERT ON events
WHEN NEW.sequence <> (SELECT size + 1 FROM tree)
BEGIN SELECT RAISE(ABORT, 'an event needs the leaves of all before it'); END;

CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;

CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'an event is never deleted'); END;

-- The highest fence that any holder of an entity ever had.
CREATE TABLE fences (
  entity TEXT PRIMARY KEY CHECK (entity <> ''),
  fence  INTEGER NOT NULL CHECK (fence > 0)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER fences_only_rise BEFORE UPDATE ON fences
WHEN NEW.entity <> OLD.entity OR NEW.fence <= OLD.fence
BEGIN SELECT RAISE(ABORT, 'a fence only rises'); END;

CREATE TRIGGER fences_stay BEFORE DELETE ON fences
BEGIN SELECT RAISE(ABORT, 'a fence is never deleted'); END;

CREATE TABLE locks (
  entity    TEXT NOT NULL REFERENCES fences (entity),
  fence     INTEGER NOT NULL,
  kind      TEXT NOT NULL CHECK (kind IN ('write', 'destructive')),
  state     TEXT NOT NULL CHECK (state IN ('active', 'orphaned', 'released')),
  change_id TEXT NOT NULL REFERENCES changes (id),
  run_id    TEXT NOT NULL CHECK (run_id <> ''),
  taken_at  TEXT NOT NULL CHECK (taken_at <> ''),
  ended_at  TEXT NOT NULL CHECK ((ended_at <> '') = (state = 'released')),
  PRIMARY KEY (entity, fence)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX locks_one_holder ON locks (entity) WHERE state <> 'released';

CREATE TRIGGER locks_end_once BEFORE UPDATE ON locks
WHEN OLD.state = 'released' OR NEW.state = 'active'
BEGIN SELECT RAISE(ABORT, 'a lock that ended never holds again'); END;

CREATE TRIGGER locks_stay BEFORE DELETE ON locks
BEGIN SELECT RAISE(ABORT, 'a lock is released, never deleted'); END;

-- How many events the audit is known to hold.
CREATE TABLE meta (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  exported INTEGER NOT NULL CHECK (exported >= 0)
) STRICT;

INSERT INTO meta (one, exported) VALUES (1, 0);
