package shell

// pipedIn says whether a plain text pipes into a command what was not typed.
func (w *walker) pipedIn(c *call) bool {
	for i, s := range w.stages {
		last := i+1 == len(w.stages) || w.args[w.stages[i+1].from].start > c.start
		if last {
			return s.piped && !typer(w.args[w.stages[i-1].from].text)
		}
	}
	return true
}
