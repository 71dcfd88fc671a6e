package shell

import (
	"slices"
	"strings"
)

// awkScript judges a program for awk. It is cut into tokens, so that what
// stands in a string or a pattern is not taken for code, and a comparison not
// for a redirection.
func (w *walker) awkScript(v *word) (effects, string) {
	if !v.known {
		return bitExecOpaque, "the program for awk cannot be seen"
	}
	p := awkParser{s: v.text, w: w, v: v, prev: ";"}
	for p.why == "" && p.next() {
		p.judge()
	}
	if p.why == "" && p.depth != 0 {
		p.fail(bitUnknown, "the program for awk has brackets that do not match")
	}
	return p.bits, p.why
}

type awkParser struct {
	s    string
	i    int
	w    *walker
	v    *word
	bits effects
	why  string

	tok, prev string // prev is the token before; strings are `"`, patterns `/`, numbers 0
	str       string // the text of a string token
	depth     int    // round brackets
	printing  int    // 1 + depth at which print began, or 0
	getline   bool
}

func (p *awkParser) fail(bits effects, why string) {
	if p.why == "" {
		p.bits, p.why = bits, why
	}
}

// next reads a token. It says false at the end.
func (p *awkParser) next() bool {
	p.prev = p.tok
	if p.prev == "" {
		p.prev = ";"
	}
	for p.i < len(p.s) && strings.IndexByte(" \t#", p.s[p.i]) >= 0 {
		if p.s[p.i] == '#' {
			line, _, _ := strings.Cut(p.s[p.i:], "\n")
			p.i += len(line)
			continue
		}
		p.i++
	}
	if p.i == len(p.s) {
		return false
	}
	from, c := p.i, p.s[p.i]
	switch {
	case c == '"':
		p.delimited('"', "a string")
		p.tok, p.str = `"`, p.s[from+1:max(from+1, p.i-1)]
	case c == '/' && p.regexPlace():
		p.pattern()
		p.tok = "/"
	case c >= '0' && c <= '9':
		for p.i < len(p.s) && (isWordByte(p.s[p.i]) || p.s[p.i] == '.') {
			p.i++
		}
		p.tok = "0"
	case isWordByte(c):
		for p.i < len(p.s) && isWordByte(p.s[p.i]) {
			p.i++
		}
		p.tok = p.s[from:p.i]
	default:
		p.tok = p.operator()
	}
	return p.why == ""
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *awkParser) operator() string {
	for _, op := range []string{"&&", "||", "|&", ">>", "++", "--", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "^=", "!~"} {
		if strings.HasPrefix(p.s[p.i:], op) {
			p.i += 2
			return op
		}
	}
	p.i++
	return p.s[p.i-1 : p.i]
}

func (p *awkParser) delimited(end byte, what string) {
	for p.i++; p.i < len(p.s); p.i++ {
		switch p.s[p.i] {
		case end:
			p.i++
			return
		case '\\':
			p.i++
		case '\n':
			p.fail(bitUnknown, "in the program for awk "+what+" breaks off")
			return
		}
	}
	p.fail(bitUnknown, "in the program for awk "+what+" is cut off")
}

// pattern reads /…/; within brackets a slash is an ordinary sign for some awks
// and the end for others, so that such a pattern is not judged.
func (p *awkParser) pattern() {
	from := p.i
	p.delimited('/', "a pattern")
	inside := p.s[from+1 : max(from+1, p.i-1)]
	if open := strings.LastIndexByte(inside, '['); open >= 0 && !strings.Contains(inside[open:], "]") {
		p.fail(bitUnknown, "in the program for awk a pattern has a slash within brackets")
	}
}

// regexPlace says whether a slash begins a pattern here, and fails where that
// is not certain.
func (p *awkParser) regexPlace() bool {
	switch prev := p.prev; {
	case prev == `"` || prev == "0" || prev == "]":
		return false
	case prev == "/": // after a pattern: concatenation or division
		p.fail(bitUnknown, "in the program for awk a slash after a pattern cannot be judged")
		return false
	case prev == ")" || prev == "++" || prev == "--" || prev == "length" || prev == "getline":
		rest, _, _ := strings.Cut(p.s[p.i+1:], "\n")
		end := strings.IndexByte(rest, '/')
		if end >= 0 && (end == 0 || strings.Trim(rest[:end], "0123456789 .") != "" || end+1 < len(rest) && rest[end+1] == '/') {
			p.fail(bitUnknown, "in the program for awk a slash may be a division or a pattern")
		}
		return false
	case slices.Contains([]string{"print", "printf", "return", "in", "do", "else", "case"}, prev):
		return true
	}
	return !isWordByte(p.prev[0])
}

// judge looks at the present token.
func (p *awkParser) judge() {
	switch t := p.tok; t {
	case "(":
		p.depth++
	case ")":
		p.depth--
	case "print", "printf":
		p.printing = p.depth + 1
	case "\n":
		if !slices.Contains([]string{",", "&&", "||"}, p.prev) {
			p.printing, p.getline = 0, false
		}
		p.tok = p.prev + "\n"
	case ";", "{", "}":
		p.printing, p.getline = 0, false
	case ">", ">>":
		if p.printing == p.depth+1 {
			p.output()
		}
	case "|", "|&":
		p.fail(bitExecOpaque, "awk hands text to a program, or takes it from one")
	case "@":
		p.fail(bitExecOpaque, "awk calls or includes something by name")
	case "system":
		p.fail(bitExecOpaque, "awk's system runs a program")
	case "getline":
		p.getline = true
	case "<":
		if p.getline {
			p.fail(bitUnknown, "awk's getline reads a file of its own")
		}
	case "ENVIRON", "SYMTAB", "ARGV", "ARGC", "FUNCTAB", "PROCINFO":
		p.special(t)
	}
}

// special judges the arrays through which awk sees more than its input.
func (p *awkParser) special(name string) {
	rest := strings.TrimLeft(p.s[p.i:], " \t")
	if name == "ENVIRON" && strings.HasPrefix(rest, `["`) {
		key, _, ok := strings.Cut(rest[2:], `"]`)
		if ok && !secretName(key) {
			return
		}
	}
	if name == "ENVIRON" {
		p.fail(bitReadSecret, "awk's ENVIRON holds the secrets of the environment")
		return
	}
	p.fail(bitUnknown, "awk's "+name+" changes which files and functions are used")
}

// output judges the file after print … >.
func (p *awkParser) output() {
	if !p.next() || p.tok != `"` {
		p.fail(bitWrite, "awk writes a file whose name it makes")
		return
	}
	name := p.str
	rest := strings.TrimLeft(p.s[p.i:], " \t")
	if rest != "" && strings.IndexByte(";}\n", rest[0]) < 0 || strings.Contains(name, `\`) {
		p.fail(bitWrite, "awk writes a file whose name it makes")
		return
	}
	file := word{text: name, known: true, start: p.v.start, end: p.v.end}
	p.w.pathWrite(&file, p.v.start, p.v.end, "awk/print")
}
