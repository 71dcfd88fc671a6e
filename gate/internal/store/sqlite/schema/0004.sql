-- What people stopped.

CREATE TABLE halts (
  id   TEXT PRIMARY KEY CHECK (id <> '' AND id = json_extract(body, '$.id')),
  body TEXT NOT NULL
) STRICT;

CREATE INDEX halts_in_force ON halts (id) WHERE json_extract(body, '$.lifted_at') = '';

CREATE TRIGGER halts_are_lifted_once BEFORE UPDATE ON halts
WHEN json_extract(OLD.body, '$.lifted_at') <> '' OR json_extract(NEW.body, '$.lifted_at') = ''
  OR json_remove(NEW.body, '$.lifted_at', '$.lifted_by') <> json_remove(OLD.body, '$.lifted_at', '$.lifted_by')
BEGIN SELECT RAISE(ABORT, 'a halt can only be lifted, and once'); END;

CREATE TRIGGER halts_stay BEFORE DELETE ON halts
BEGIN SELECT RAISE(ABORT, 'a halt is lifted, never deleted'); END;
