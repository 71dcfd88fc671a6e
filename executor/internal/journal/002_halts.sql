-- Runs of which no further step is started.
CREATE TABLE halts (
  run TEXT PRIMARY KEY CHECK (run <> ''),
  at  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER halts_stay BEFORE DELETE ON halts
BEGIN SELECT RAISE (ABORT, 'a run that was halted stays halted'); END;
CREATE TRIGGER halts_as_written BEFORE UPDATE ON halts
BEGIN SELECT RAISE (ABORT, 'a run that was halted stays halted'); END;
