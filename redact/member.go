package redact

import (
	"regexp"
	"strings"
)

var (
	// assigns is what stands between a name and its value: the quote that closes
	// the name, a type, an operator.
	assigns = regexp.MustCompile("\\A((?:\\\\*[\"'`]|\\]|%5D){1,2})?" + `(?:[ \t]+string|[ \t]*:[ \t]*string\??)?[ \t]*` +
		`(=>|->|:{1,3}=|[?.+|]{1,2}=|={1,3}|!=|::?|,|>|%3[dD]|%3[aA])[ \t]*`)
	// paired is the same where name and value are members of one object.
	paired = regexp.MustCompile(`\A\\*["']?[ \t]*,?\s*\\*["']?[vV]alue\\*["']?\s*[:=]\s*`)
	// spaced is the same behind a flag of a command.
	spaced = regexp.MustCompile(`\A(?:[ \t]+|["'],\s*)`)
	// another is the beginning of the next member, in a form or a list of settings.
	another = regexp.MustCompile(`\A[&;,][ ]?[\w.\-]+=`)
	// opens is what may stand before the first name of a line.
	opens = regexp.MustCompile(`(?:^|\n)[ \t\-]*(?:export )?$`)
	// flag begins a long option.
	flag = regexp.MustCompile(`(?:^|[\s"'=])-{1,2}[\w.\-]*$`)
)

// member looks at the name around text[at] and hides its value, if the name
// speaks of a secret. It answers where the name ends, or the value if hidden.
func member(text string, at int, report func(span)) int {
	start, end := at, at
	for start > 0 && at-start < 100 && isName(text[start-1]) {
		start--
	}
	for end < len(text) && end-at < 100 && isName(text[end]) {
		end++
	}
	name := text[start:end]
	w := weigh(name)
	if w == weak && start > 0 && text[start-1] == ' ' { // "API key"
		before := strings.Fields(text[max(0, start-20):start])
		if len(before) > 0 && keyOwners[strings.ToLower(before[len(before)-1])] {
			w = strong
		}
	}
	if w == none || name == "PASS" && strings.HasPrefix(text[end:], ":") { // of a test
		return end
	}
	v := value{text: text, weight: w, plural: strings.HasSuffix(strings.ToLower(name), "s"), shouted: name == strings.ToUpper(name)}
	behind := text[end:min(len(text), end+200)]
	if m := paired.FindStringIndex(behind); m != nil {
		v.at, v.operator = end+m[1], "="
	} else if m := assigns.FindStringSubmatchIndex(behind); m != nil {
		v.at, v.operator, v.closed = end+m[1], behind[m[4]:m[5]], m[2] >= 0
	} else if m := spaced.FindStringIndex(behind); m != nil && flag.MatchString(text[max(0, start-2):end]) {
		v.at, v.operator = end+m[1], "flag"
	} else {
		return end
	}
	if v.operator == ">" && (start == 0 || text[start-1] != '<' && text[start-1] != ':') {
		return end
	}
	v.first = opens.MatchString(text[max(0, start-100):start])
	from, to, ok := v.find()
	if !ok {
		return end
	}
	report(span{begin: start, from: from, to: to, kind: "member"})
	return max(end, to)
}

func isName(c byte) bool { return isAlnum(c) || c == '_' || c == '-' || c == '.' }

// value is what stands behind a name and an operator.
type value struct {
	text     string
	at       int
	operator string
	weight   weight
	closed   bool // the name is quoted
	plural   bool // the name is a plural
	shouted  bool // the name is in capital letters, as of a variable
	first    bool // the name is the first on its line
}

// find says which bytes are the secret, if any.
func (v *value) find() (from, to int, ok bool) {
	if v.operator == ">" {
		for v.at < len(v.text) && strings.IndexByte(" \t\r\n", v.text[v.at]) >= 0 {
			v.at++
		}
	}
	from, to, quoted := v.quoted()
	if !quoted {
		from, to = v.at, v.bare()
	}
	found := v.text[from:to]
	if !quoted && len(found) == reach/2 && plausible(found, v.weight) {
		v.weight = strong
		to = v.bare()
		found = v.text[from:to]
	}
	if !plausible(found, v.weight) || found[0] == ':' || found[0] == '=' {
		return 0, 0, false
	}
	digits := strings.Trim(found, "0123456789.,") == ""
	switch {
	case v.plural && digits && len(found) < 8:
		return 0, 0, false // a number of tokens
	case v.operator == ",":
		return from, to, v.closed && quoted && (looksRandom(found) || digits || v.shouted)
	case v.operator == "!=", strings.HasPrefix(v.operator, "=="):
		return from, to, quoted
	case quoted:
		return from, to, true
	case v.operator == "flag":
		return from, to, found[0] != '-'
	case isCode(found), v.weight == strong && strings.HasPrefix(found, "/run/secrets/"):
		return 0, 0, false
	case v.operator == ":" && v.prose(found, to):
		return 0, 0, false
	}
	return from, to, true
}

// quoted finds the value inside quotes, which may be escaped any number of times.
func (v *value) quoted() (from, to int, ok bool) {
	text, i := v.text, v.at
	for i < len(text) && text[i] == '\\' {
		i++
	}
	escapes := i - v.at
	if i == len(text) || strings.IndexByte("\"'`", text[i]) < 0 {
		return 0, 0, false
	}
	quote, from := text[i], i+1
	for i = from; i < len(text); i++ {
		if text[i] == '\n' && quote != '`' && escapes == 0 {
			break // the quote was never closed
		}
		if text[i] != quote {
			continue
		}
		slashes := 0
		for i-slashes > from && text[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%(2*(escapes+1)) == escapes {
			return from, i - escapes, true
		}
	}
	return from, i, true
}

// bare finds the end of a value without quotes.
func (v *value) bare() int {
	stop := " \t\r\n\"'`,;&}])<>|"
	if v.first && v.operator == "=" && v.at > 0 && v.text[v.at-1] == '=' {
		stop = " \t\r\n\"'`<>" // a file of variables
	}
	if v.operator == ">" {
		stop = "<\r\n"
	}
	i := v.at
	// A name that says little has a short value; of the others no byte is looked
	// at twice.
	end := len(v.text)
	if v.weight == weak {
		end = min(end, v.at+reach/2)
	}
	for i < end && strings.IndexByte(stop, v.text[i]) < 0 && !v.escape(i) && !v.another(i) {
		i++
	}
	rest, _, _ := strings.Cut(v.text[i:min(len(v.text), i+reachLine)], "\n")
	// A passphrase of several words, behind the first name of a line.
	if v.first && v.weight == strong && v.text[v.at-1] == ' ' && strings.HasPrefix(rest, " ") && v.operator != "flag" &&
		!strings.ContainsAny(rest, "=:#\"'") && !plainValues[strings.ToLower(v.text[v.at:i])] && i > v.at {
		return i + len(strings.TrimRight(rest, " \t\r"))
	}
	return i
}

// another reports whether the next member begins at text[i].
func (v *value) another(i int) bool {
	return strings.IndexByte("&;,", v.text[i]) >= 0 && another.MatchString(v.text[i:min(len(v.text), i+80)])
}

// escape reports whether a line ends at text[i] by an escape sequence, inside a
// quoted text.
func (v *value) escape(i int) bool {
	rest := v.text[i:]
	if rest[0] == '%' && i > v.at {
		return strings.HasPrefix(v.operator, "%3") && (strings.HasPrefix(rest, "%26") || strings.HasPrefix(rest, "%22") || strings.HasPrefix(rest, "%2C"))
	}
	return rest[0] == '\\' && len(rest) > 1 && strings.IndexByte(`nrt"'\`, rest[1]) >= 0
}

// prose reports whether "name: word" is the beginning of a sentence.
func (v *value) prose(found string, end int) bool {
	rest := strings.TrimLeft(v.text[end:], " ")
	spoken := len(rest) < len(v.text[end:]) && rest != "" && isAlnum(rest[0])
	return spoken && strings.Trim(strings.ToLower(found), "abcdefghijklmnopqrstuvwxyz'-.") == ""
}

// isCode reports whether a value calls something: os.getenv(…), config[…].
func isCode(v string) bool {
	i := strings.IndexAny(v, "([")
	return i > 0 && strings.Trim(strings.ToLower(v[:i]), "abcdefghijklmnopqrstuvwxyz_.") == ""
}
