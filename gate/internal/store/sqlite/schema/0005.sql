-- What was decided on a thing, by its name: computed from the plan of a change,
-- whose entities no longer move once somebody may decide on it.

CREATE TABLE plans (
  entity    TEXT NOT NULL CHECK (entity <> ''),
  change_id TEXT NOT NULL REFERENCES changes (id),
  PRIMARY KEY (entity, change_id)
) STRICT, WITHOUT ROWID;

INSERT INTO plans (entity, change_id)
  SELECT step.value ->> '$.entity', c.id FROM changes AS c, json_each(c.body, '$.steps') AS step
  WHERE step.type = 'object' AND step.value ->> '$.entity' <> ''
  UNION
  SELECT touched.value, c.id FROM changes AS c, json_each(c.body, '$.steps') AS step, json_each(step.value, '$.touches') AS touched
  WHERE step.type = 'object' AND touched.type = 'text' AND touched.value <> '';

CREATE TRIGGER changes_are_planned AFTER INSERT ON changes
BEGIN
  INSERT INTO plans (entity, change_id)
  SELECT step.value ->> '$.entity', NEW.id FROM json_each(NEW.body, '$.steps') AS step
  WHERE step.type = 'object' AND step.value ->> '$.entity' <> ''
  UNION
  SELECT touched.value, NEW.id FROM json_each(NEW.body, '$.steps') AS step, json_each(step.value, '$.touches') AS touched
  WHERE step.type = 'object' AND touched.type = 'text' AND touched.value <> '';
END;

CREATE TRIGGER changes_are_decided AFTER UPDATE ON changes
WHEN NEW.state <> OLD.state AND NEW.state IN ('awaiting_approval', 'approved')
BEGIN
  INSERT OR IGNORE INTO plans (entity, change_id)
  SELECT step.value ->> '$.entity', NEW.id FROM json_each(NEW.body, '$.steps') AS step
  WHERE step.type = 'object' AND step.value ->> '$.entity' <> ''
  UNION
  SELECT touched.value, NEW.id FROM json_each(NEW.body, '$.steps') AS step, json_each(step.value, '$.touches') AS touched
  WHERE step.type = 'object' AND touched.type = 'text' AND touched.value <> '';
END;

CREATE TRIGGER plans_stay_as_they_are BEFORE UPDATE ON plans
BEGIN SELECT RAISE(ABORT, 'what a change was decided on never changes'); END;

CREATE TRIGGER plans_stay BEFORE DELETE ON plans
BEGIN SELECT RAISE(ABORT, 'what a change was decided on is never deleted'); END;
