package fault

// Code says what kind of failure it is. Codes are part of the API.
type Code string

// The codes. Failed, Unverified, Stranded and Unknown say which state the
// target is in; Unavailable is never used once a write may have been sent.
const (
	Invalid         Code = "invalid"
	Unauthenticated Code = "unauthenticated"
	Denied          Code = "denied"
	ApprovalMissing Code = "approval_missing"
	NotFound        Code = "not_found"
	Conflict        Code = "conflict"
	Spent           Code = "spent"
	Expired         Code = "expired"
	Stale           Code = "stale"
	Unsupported     Code = "unsupported"
	Unavailable     Code = "unavailable"
	Failed          Code = "failed"
	Unverified      Code = "unverified"
	Stranded        Code = "stranded"
	Refused         Code = "refused"
	Unknown         Code = "unknown"
	Exhausted       Code = "exhausted"
	Timeout         Code = "timeout"
	Canceled        Code = "canceled"
	Internal        Code = "internal"
)

// Row is what a code means to each way in.
type Row struct {
	Code  Code
	HTTP  int  // status of a REST answer
	Exit  int  // exit status of a command
	Retry bool // the same call may succeed later, and repeating it is safe
	Title string
}

// table holds one row a code. Exit statuses are unique, so that a script can
// act on them.
var table = []Row{
	{Invalid, 400, 2, false, "The request is not valid"},
	{Unauthenticated, 401, 5, false, "Who is calling is not known"},
	{Denied, 403, 3, false, "Not allowed"},
	{ApprovalMissing, 428, 4, false, "Waiting for an approval"},
	{NotFound, 404, 6, false, "There is no such thing"},
	{Conflict, 409, 7, true, "Something else holds it"},
	{Spent, 409, 17, false, "Used before"},
	{Expired, 410, 18, false, "Too late"},
	{Stale, 412, 8, false, "The target changed since the preview"},
	{Unsupported, 501, 9, false, "Not supported"},
	{Unavailable, 503, 11, true, "Not available, nothing was changed"},
	{Failed, 502, 12, false, "Failed, the target is as before"},
	{Unverified, 502, 13, false, "Applied, but the check afterwards did not pass"},
	{Stranded, 500, 14, false, "The rollback failed"},
	{Refused, 403, 15, false, "The executor refused"},
	{Unknown, 502, 16, false, "Sent, but what became of it is not known"},
	{Exhausted, 429, 10, true, "Too many requests"},
	{Timeout, 504, 124, true, "Out of time"},
	{Canceled, 499, 130, true, "Cancelled by the caller"},
	{Internal, 500, 1, false, "A fault inside writ"},
}

// Table returns a copy of the whole table.
func Table() []Row { return append([]Row(nil), table...) }

// Row returns the row of a code; a code that is not in the table is Internal.
func (c Code) Row() Row {
	last := len(table) - 1
	for _, r := range table {
		if r.Code == c {
			return r
		}
	}
	return table[last]
}
