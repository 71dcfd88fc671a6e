-- Which log belongs to this file; package wal says how. The first table: page 2.
CREATE TABLE generation (
  only   INTEGER PRIMARY KEY CHECK (only = 1),
  tag    BLOB NOT NULL CHECK (length(tag) = 16),
  before BLOB NOT NULL CHECK (length(before) = 16)
) STRICT;

INSERT INTO generation (only, tag, before) VALUES (1, zeroblob(16), zeroblob(16));

-- One row for each writ that was admitted. It is written before anything is
-- read or sent, and its nonce stays spent for ever.
CREATE TABLE writs (
  nonce       TEXT PRIMARY KEY CHECK (nonce <> ''),
  run         TEXT NOT NULL CHECK (run <> ''),
  purpose     TEXT NOT NULL CHECK (purpose IN ('observe', 'execute')),
  digest      TEXT NOT NULL CHECK (digest LIKE 'sha256:%'),
  sealed      BLOB NOT NULL,
  admitted_at TEXT NOT NULL,
  finished_at TEXT CHECK (finished_at >= admitted_at)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX writs_run ON writs (run) WHERE purpose = 'execute';
CREATE INDEX writs_unfinished ON writs (admitted_at) WHERE finished_at IS NULL;

CREATE TRIGGER writs_stay BEFORE DELETE ON writs
BEGIN SELECT RAISE (ABORT, 'a spent writ stays spent'); END;

CREATE TRIGGER writs_once BEFORE UPDATE ON writs
WHEN OLD.finished_at IS NOT NULL OR NEW.finished_at IS NULL
  OR NEW.nonce <> OLD.nonce OR NEW.run <> OLD.run OR NEW.purpose <> OLD.purpose
  OR NEW.digest <> OLD.digest OR NEW.sealed <> OLD.sealed OR NEW.admitted_at <> OLD.admitted_at
BEGIN SELECT RAISE (ABORT, 'of an admitted writ only its end may be written, once'); END;

-- What happened in a run, in order. Nothing here is ever changed.
CREATE TABLE entries (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  run  TEXT NOT NULL,
  step TEXT NOT NULL,
  undo INTEGER NOT NULL CHECK (undo IN (0, 1)),
  kind TEXT NOT NULL CHECK (kind IN ('backup', 'sent', 'result', 'applied', 'receipt')),
  call INTEGER NOT NULL CHECK (call >= 0),
  mark TEXT NOT NULL CHECK ((mark <> '') = (kind IN ('sent', 'result'))),
  at   TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;

CREATE INDEX entries_run ON entries (run, id);
CREATE UNIQUE INDEX entries_mark ON entries (mark, kind) WHERE mark <> '';
-- One writ, one step, one call: one sent, whoever asks for a second.
CREATE UNIQUE INDEX entries_sent_once ON entries (run, step, undo, call) WHERE kind = 'sent';
-- What was sent last, without looking through all that was read since.
CREATE INDEX entries_sent ON entries (id) WHERE kind = 'sent';
CREATE UNIQUE INDEX entries_receipt ON entries (run, step, undo) WHERE kind = 'receipt';

CREATE TRIGGER entries_stay BEFORE DELETE ON entries
BEGIN SELECT RAISE (ABORT, 'the journal is append-only'); END;
CREATE TRIGGER entries_as_written BEFORE UPDATE ON entries
BEGIN SELECT RAISE (ABORT, 'the journal is append-only'); END;
-- A result belongs to something that was sent; nothing is sent once a receipt says how the step ended.
CREATE TRIGGER entries_result BEFORE INSERT ON entries
WHEN NEW.kind = 'result' AND NOT EXISTS (SELECT 1 FROM entries WHERE mark = NEW.mark AND kind = 'sent' AND run = NEW.run)
BEGIN SELECT RAISE (ABORT, 'a result needs its sent entry'); END;
CREATE TRIGGER entries_sent BEFORE INSERT ON entries
WHEN NEW.kind = 'sent' AND (
  EXISTS (SELECT 1 FROM entries WHERE run = NEW.run AND step = NEW.step AND undo = NEW.undo AND kind = 'receipt')
  OR NOT EXISTS (SELECT 1 FROM writs WHERE run = NEW.run AND purpose = 'execute' AND finished_at IS NULL))
BEGIN SELECT RAISE (ABORT, 'nothing may be sent for a step that has ended'); END;

-- The highest fence that was admitted for each entity.
CREATE TABLE fences (
  entity TEXT PRIMARY KEY,
  number INTEGER NOT NULL CHECK (number > 0),
  run    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER fences_rise BEFORE UPDATE ON fences WHEN NEW.number <= OLD.number
BEGIN SELECT RAISE (ABORT, 'a fence only rises'); END;
CREATE TRIGGER fences_stay BEFORE DELETE ON fences
BEGIN SELECT RAISE (ABORT, 'a fence only rises'); END;

CREATE TABLE epoch (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  number INTEGER NOT NULL CHECK (number >= 0)
) STRICT;
INSERT INTO epoch VALUES (1, 0);
CREATE TRIGGER epoch_rises BEFORE UPDATE ON epoch WHEN NEW.number < OLD.number
BEGIN SELECT RAISE (ABORT, 'the epoch only rises'); END;

-- What is told of all of the above, as lines of the audit, with their Merkle tree.
CREATE TABLE events (
  sequence INTEGER PRIMARY KEY CHECK (sequence = json_extract(line, '$.sequence')),
  line     TEXT NOT NULL
) STRICT;

CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN SELECT RAISE (ABORT, 'an event is never deleted'); END;
CREATE TRIGGER events_as_written BEFORE UPDATE ON events
BEGIN SELECT RAISE (ABORT, 'an event never changes'); END;

CREATE TABLE tree (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  size     INTEGER NOT NULL CHECK (size >= 0),
  peaks    BLOB NOT NULL,
  exported INTEGER NOT NULL CHECK (exported BETWEEN 0 AND size) -- how many the audit is known to hold
) STRICT;
INSERT INTO tree VALUES (1, 0, x'', 0);
CREATE TRIGGER events_grow_the_tree BEFORE INSERT ON events
WHEN NEW.sequence <> (SELECT size + 1 FROM tree)
BEGIN SELECT RAISE (ABORT, 'an event needs the leaves of all before it'); END;
CREATE TRIGGER tree_grows_with_events BEFORE UPDATE ON tree
WHEN NEW.size <> OLD.size + 1 OR NEW.size <> (SELECT max(sequence) FROM events) OR NEW.exported < OLD.exported
BEGIN SELECT RAISE (ABORT, 'the tree has one leaf for each event'); END;
CREATE TRIGGER tree_stays BEFORE DELETE ON tree
BEGIN SELECT RAISE (ABORT, 'the tree is never deleted'); END;
