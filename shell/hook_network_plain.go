package shell

// pipedIn says whether a plain text pipes into a command what was not typed.
func (w *walker) pipedIn(*call) bool { return false }
