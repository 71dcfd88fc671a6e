package oracle

import "regexp"

// traces is all that a text called read-only may leave or try, each with the
// reason. The paths are absolute.
var traces = []struct{ what, where, because string }{
	{`.*`, `/dev/(null|zero|full|tty|stdout|stderr|fd/\d+)`, "what is written there is nowhere, or is the output"},
	{`.*`, `/proc/(self|thread-self|\d+)/fd/\d+`, "the output of the text itself"},
	{`.*`, `(pipe|socket):.*`, "a pipe of the text itself"},
	{`.*`, `/tmp/sh-thd\.\w+`, "bash keeps a long here-document in a file that it unlinks before anybody reads it"},
	{`.*`, `/(var/)?tmp/sort\w{6}`, "sort keeps what does not fit into memory, and unlinks it"},
}

// trace says whether an attempt, or what was found afterwards, is a named trace.
func trace(what, where string) bool {
	for _, t := range traces {
		if matches(t.what, what) && matches(t.where, where) {
			return true
		}
	}
	return false
}

func matches(pattern, s string) bool {
	ok, err := regexp.MatchString(`^(?:`+pattern+`)$`, s)
	return ok && err == nil
}
