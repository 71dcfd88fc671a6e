package shell

import (
	"strings"
)

// hookSealed is for commands that join their operands and read them again in a
// language of their own: a sign that ends or opens something there lets more
// follow than was read.
func hookSealed(w *walker, c *call) {
	for i := range c.operands {
		a := &c.operands[i]
		if !a.known || strings.ContainsAny(a.text, ";\n{}|\\`!") {
			w.note(bitExecOpaque, a.start, a.end, c.node.path, "more than one request may stand in "+a.show())
			if !c.node.anything {
				w.drasticText(a)
			}
		}
	}
}
