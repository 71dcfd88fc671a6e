-- What was denied lately is looked up for every change that is decided.

CREATE INDEX changes_ended_at ON changes (state, json_extract(body, '$.ended_at'));
