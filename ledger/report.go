package ledger

import "fmt"

// Report is what is certain of a ledger: its first events, up to the first
// thing that is wrong.
type Report struct {
	Origin   string
	Key      string // the public key that signs now
	Events   int64  // that are in order, from the first on
	Segments int64
	Signed   int64 // events that the ledger's own checkpoint covers
	Kept     int64 // events that the checkpoint covers that was kept elsewhere
	Compared bool  // there was such a checkpoint
	Cosigned []Cosigned
	Root     Hash // of the events
	Torn     bool // a torn line follows them
}

// String says no more than what is certain.
func (r Report) String() string {
	what := count(r.Events, "event") + " in " + count(r.Segments, "segment")
	text := what + ", prefix valid"
	if r.Compared {
		text = fmt.Sprintf("%s, complete and unchanged up to event %d, as the kept checkpoint has them", what, r.Kept)
		if r.Events > r.Kept {
			text += fmt.Sprintf("; %s after it: prefix valid", count(r.Events-r.Kept, "event"))
		}
	} else {
		text += ": whether later events were removed, only a checkpoint can show that was kept elsewhere"
	}
	if r.Events > r.Signed {
		text += fmt.Sprintf("; not signed yet: the last %s", count(r.Events-r.Signed, "event"))
	}
	for _, c := range r.Cosigned {
		text += fmt.Sprintf("; the witness %s had seen the first %d of them on %s", c.Witness, c.Events, c.At)
	}
	if r.Torn {
		text += "; a torn line follows"
	}
	return text
}

// count names a number of things.
func count(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
