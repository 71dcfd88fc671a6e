-- The same request again is found among those that a requester has open.

CREATE INDEX changes_request ON changes (requester, json_extract(body, '$.request_digest'));
