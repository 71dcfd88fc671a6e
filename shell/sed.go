package shell

import "strings"

// sedScript judges a program for sed. Anything it does not know for certain
// is unknown; a program that is cut off is, too, because the next -e goes on
// where it ends.
func (w *walker) sedScript(v *word) (effects, string) {
	if !v.known {
		return bitExecOpaque, "the program for sed cannot be seen"
	}
	p := sedParser{s: v.text, w: w, v: v}
	for p.why == "" && p.i < len(p.s) {
		p.steps()
	}
	return p.bits, p.why
}

type sedParser struct {
	s    string
	i    int
	bits effects
	why  string
	w    *walker
	v    *word
}

func (p *sedParser) fail(bits effects, why string) {
	if p.why == "" {
		p.bits, p.why = bits, why
	}
	p.i = len(p.s)
}

func (p *sedParser) skip(set string) {
	for p.i < len(p.s) && strings.IndexByte(set, p.s[p.i]) >= 0 {
		p.i++
	}
}

func (p *sedParser) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// steps reads one command with its addresses.
func (p *sedParser) steps() {
	p.skip(" \t\n;}")
	if p.i == len(p.s) || !p.address() {
		return
	}
	p.skip(" \t")
	if p.peek() == ',' {
		p.i++
		p.skip(" \t+~")
		if !p.address() {
			return
		}
	}
	p.skip(" \t!")
	p.command()
}

// address reads one address, which may be missing.
func (p *sedParser) address() bool {
	switch c := p.peek(); {
	case c >= '0' && c <= '9':
		p.skip("0123456789~")
	case c == '$':
		p.i++
	case c == '/' || c == '\\':
		if c == '\\' {
			p.i++
		}
		if !p.until(p.peek(), true) {
			return false
		}
		p.skip("IM")
	}
	return true
}

// until reads from one delimiter to the next one that is not escaped. In a
// pattern, a delimiter within brackets ends it too for GNU sed's own reader, so
// it does here.
func (p *sedParser) until(delim byte, pattern bool) bool {
	if delim == 0 || delim == '\n' || delim == '\\' {
		p.fail(bitUnknown, "the program for sed cannot be read")
		return false
	}
	for p.i++; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case delim:
			p.i++
			return true
		case '\\':
			p.i++
		case '\n':
			if pattern {
				p.fail(bitUnknown, "the program for sed breaks off in a pattern")
				return false
			}
		}
	}
	p.fail(bitUnknown, "the program for sed is cut off")
	return false
}

// line reads to the end of the line: the name of a file or a text.
func (p *sedParser) line() string {
	end := strings.IndexByte(p.s[p.i:], '\n')
	if end < 0 {
		end = len(p.s) - p.i
	}
	text := strings.TrimLeft(p.s[p.i:p.i+end], " \t")
	p.i += end
	return text
}

func (p *sedParser) command() {
	c := p.peek()
	p.i++
	switch c {
	case '{', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		if c != '{' {
			p.end()
		}
	case 'q', 'Q', 'l', 'L':
		p.skip(" \t0123456789")
		p.end()
	case '#':
		p.line()
	case ':', 'b', 't', 'T', 'v':
		for p.i < len(p.s) && p.s[p.i] != '\n' && p.s[p.i] != ';' && p.s[p.i] != '}' {
			p.i++
		}
	case 'a', 'i', 'c':
		p.text()
	case 'r', 'R':
		if name := p.line(); name != "/dev/stdin" {
			file := word{text: name, known: true, start: p.v.start, end: p.v.end}
			p.w.pathRead(&file, "sed/r", false)
		}
	case 'w', 'W':
		p.write(p.line())
	case 's':
		if delim := p.peek(); p.until(delim, false) {
			p.i--
			if p.until(delim, false) {
				p.flags()
			}
		}
	case 'y':
		if delim := p.peek(); p.until(delim, false) {
			p.i--
			if p.until(delim, false) {
				p.end()
			}
		}
	case 'e':
		p.fail(bitExecOpaque, "sed's command e runs a program")
	default:
		p.fail(bitUnknown, "the program for sed has a command that is not known")
	}
}

// write judges the file that w writes.
func (p *sedParser) write(name string) {
	file := word{text: name, known: true, start: p.v.start, end: p.v.end}
	p.w.pathWrite(&file, p.v.start, p.v.end, "sed/w")
}

// text reads what a, i and c add: the line, and those it goes on with.
func (p *sedParser) text() {
	for p.i < len(p.s) {
		end := strings.IndexByte(p.s[p.i:], '\n')
		if end < 0 {
			if strings.HasSuffix(p.s, "\\") {
				p.fail(bitUnknown, "the program for sed is cut off")
			}
			p.i = len(p.s)
			return
		}
		p.i += end + 1
		if p.i < 2 || p.s[p.i-2] != '\\' {
			return
		}
	}
}

func (p *sedParser) flags() {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case strings.IndexByte("gpiImM0123456789", c) >= 0:
			p.i++
		case c == 'e':
			p.fail(bitExecOpaque, "the flag e of sed's s runs what it makes")
		case c == 'w':
			p.i++
			p.write(p.line())
			return
		default:
			p.end()
			return
		}
	}
}

// end holds that a command ends here.
func (p *sedParser) end() {
	p.skip(" \t")
	if c := p.peek(); p.i < len(p.s) && c != '\n' && c != ';' && c != '}' && c != '#' {
		p.fail(bitUnknown, "the program for sed has something after a command")
	}
}
