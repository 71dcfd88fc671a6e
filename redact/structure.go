package redact

import (
	"cmp"
	"encoding/base64"
	"regexp"
	"strings"
	"sync"
)

// rule finds the secrets that begin at, or follow, a word. Words are compared
// in lower case, and a · stands for a space.
type rule struct {
	kind    string
	words   string
	pattern string // holds from the word on; a group is the secret, and without groups all of it
	example string // which the rule hides something of

	back   int  // how many bytes before the word the pattern begins
	inside bool // the word may stand inside another
	every  bool // the pattern is looked for in the rest of the line, as often as it is there
	random bool // only what looks random
}

// finder is every word that can begin a secret, and what it means.
type finder struct {
	automaton *automaton
	words     []string
	rules     [][]ready // by word
	count     int       // of rules
}

type ready struct {
	rule
	id       int
	compiled *regexp.Regexp
}

// nameParts are what the names of members that hold secrets contain.
var nameParts = strings.Fields("pass pwd psk secret token login cred communit key auth jwt otp bearer sid session sig nonce salt kennwort")

var known = sync.OnceValue(func() *finder {
	f := &finder{}
	at := map[string]int{}
	word := func(w string) int {
		if _, ok := at[w]; !ok {
			at[w] = len(f.words)
			f.words, f.rules = append(f.words, w), append(f.rules, nil)
		}
		return at[w]
	}
	for _, w := range nameParts {
		word(w)
	}
	word(userinfoMark)
	word(pemMark)
	word(manifestMark)
	for _, rules := range [][]rule{places, commands, tokens} {
		for _, r := range rules {
			start := `\A`
			if r.every {
				start = ""
			}
			r.kind = cmp.Or(r.kind, "argument")
			c := ready{r, f.count, regexp.MustCompile(start + `(?:` + r.pattern + `)`)}
			f.count++
			for w := range strings.FieldsSeq(r.words) {
				i := word(strings.ReplaceAll(w, "·", " "))
				f.rules[i] = append(f.rules[i], c)
			}
		}
	}
	f.automaton = newAutomaton(f.words)
	return f
})

// find reports what stands where secrets stand, and what says itself that it is
// one. A text is somebody else's: each rule looks at each byte a bounded number
// of times, so that no text takes long.
func find(text string, report func(span)) {
	f := known()
	var names, keys, manifests int // up to where these are done
	var done []int                 // the same, by rule
	f.automaton.search(text, &lower, func(word, end int) {
		start := end - len(f.words[word])
		switch {
		case word < len(nameParts):
			if end > names {
				names = member(text, start, report)
			}
		case f.words[word] == userinfoMark:
			userinfo(text, start, report)
		case f.words[word] == pemMark && start >= keys:
			keys = pem(text, start, report)
		case f.words[word] == manifestMark && start >= manifests:
			manifests = manifest(text, start, report)
		}
		for i := range f.rules[word] {
			r := &f.rules[word][i]
			if done == nil {
				done = make([]int, f.count)
			}
			from := start - r.back
			if from >= done[r.id] && (r.inside || bounded(text, from)) && (!r.every || end == len(text) || strings.IndexByte(" \t\"'", text[end]) >= 0) {
				done[r.id] = r.find(text, from, report)
			}
		}
	}, nil)
}

// How far behind a word a pattern looks, in bytes. What goes on there is hidden
// to its end.
const (
	reach     = 512
	reachLine = 4096
)

// find tries the rule at a word and answers up to where it need not be tried
// again.
func (r *ready) find(text string, start int, report func(span)) int {
	rest, times := text[start:min(len(text), start+reach)], 1
	if r.every {
		rest, times = command(text[start:min(len(text), start+reachLine)]), -1
	}
	done := start
	if r.every {
		done += len(rest)
	}
	for _, m := range r.compiled.FindAllStringSubmatchIndex(rest, times) {
		from, to := m[0], m[1]
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				from, to = m[g], m[g+1]
				break
			}
		}
		stop := " \t\r\n\"'"
		if r.kind == "header" {
			stop = "\r\n\"'"
		}
		for to >= reach && start+to < len(text) && strings.IndexByte(stop, text[start+to]) < 0 {
			to++
		}
		done = max(done, start+to)
		value := text[start+from : start+to]
		if to <= from || len(m) > 2 && !plausible(value, strong) || r.random && !looksRandom(value) {
			continue
		}
		report(span{begin: start, from: start + from, to: start + to, kind: r.kind})
	}
	return done
}

// command is the first line of a text, and the lines that carry it on.
func command(text string) string {
	for i := range len(text) {
		if text[i] == '\n' && (i == 0 || text[i-1] != '\\') {
			return text[:i]
		}
	}
	return text
}

// bounded reports whether a word can begin at text[i]: not inside another, but
// after the end of an escape sequence, such as \n or %3D.
func bounded(text string, i int) bool {
	if i <= 0 || !isAlnum(text[i-1]) && text[i-1] != '_' {
		return true
	}
	return i > 1 && text[i-2] == '\\' && strings.IndexByte("nrt", text[i-1]) >= 0 ||
		i > 2 && text[i-3] == '%'
}

// userinfoMark stands in every URL.
const userinfoMark = "://"

// userinfo hides what stands before the host of a URL.
func userinfo(text string, at int, report func(span)) {
	from := at + len(userinfoMark)
	end := from
	for end < len(text) && end-from < reachLine && strings.IndexByte(" \t\r\n\"'<>`", text[end]) < 0 && !strings.HasPrefix(text[end:], userinfoMark) {
		end++
	}
	authority := text[from:end]
	to := strings.LastIndexByte(authority, '@')
	if slash := strings.IndexAny(authority, "/?#"); slash >= 0 && to > slash {
		// A password may hold a slash, but a path may hold an @.
		colon := strings.IndexByte(authority[:slash], ':')
		if colon < 0 || strings.Trim(authority[colon+1:slash], "0123456789") == "" {
			to = strings.LastIndexByte(authority[:slash], '@')
		}
	}
	if to <= 0 {
		return
	}
	user, password, both := strings.Cut(authority[:to], ":")
	if both && password != "" && !isPlaceholder(password) || len(user) >= 16 && looksRandom(user) {
		report(span{begin: at, from: from, to: from + to, kind: "userinfo"})
	}
}

// pemMark begins what PEM holds.
const pemMark = "-----begin "

// maxPEM is the longest private key that is looked for, in bytes.
const maxPEM = 32 << 10

var (
	pemBegin = regexp.MustCompile(`\A-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----`)
	pemEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*-----`)
)

// pem hides a private key, also one whose end is missing, and answers where it
// ends.
func pem(text string, at int, report func(span)) int {
	rest := text[at:min(len(text), at+maxPEM)]
	if !pemBegin.MatchString(rest[:min(len(rest), 80)]) {
		return at
	}
	end := len(rest)
	if m := pemEnd.FindStringIndex(rest); m != nil {
		end = m[1]
	}
	report(span{begin: at, from: at, to: at + end, kind: "key"})
	return at + end
}

// manifestMark stands in every object of Kubernetes.
const manifestMark = "kind"

var (
	manifestKind = regexp.MustCompile(`\A(?i:kind["']?\s*:\s*["']?secret)\b`)
	manifestData = regexp.MustCompile(`(?:^|[\s{,])["']?(?:data|stringData)["']?\s*:\s*(?:\{[^}]*\}|\n(?:[ \t]+[^\n]*(?:\n|$))+)`)
	manifestPair = regexp.MustCompile(`["']?[\w.\-]+["']?\s*:[ \t]+(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"',{}|>][^\s,}]*)|[|>][-+]?\n([^:]+)$)`)
)

// manifest hides the data of a Secret of Kubernetes, and answers where the
// object ends.
func manifest(text string, at int, report func(span)) int {
	if !manifestKind.MatchString(text[at:min(len(text), at+100)]) {
		return at
	}
	begin, end := strings.LastIndex(text[:at], "\n---")+1, len(text)
	if next := strings.Index(text[at:], "\n---"); next >= 0 {
		end = at + next
	}
	doc := text[begin:end]
	for _, d := range manifestData.FindAllStringIndex(doc, -1) {
		block := begin + d[0] + strings.IndexByte(doc[d[0]:], ':') + 1
		for _, m := range manifestPair.FindAllStringSubmatchIndex(text[block:begin+d[1]], -1) {
			for g := 2; g < len(m); g += 2 {
				if m[g] >= 0 {
					report(span{begin: begin, from: block + m[g], to: block + m[g+1], kind: "member"})
				}
			}
		}
	}
	return end
}

// isBasic reports whether v is a user and a password in base64.
func isBasic(v string) bool {
	b, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		b, err = base64.RawStdEncoding.DecodeString(v)
	}
	user, password, both := strings.Cut(string(b), ":")
	return err == nil && both && user != "" && password != "" && strings.IndexFunc(string(b), func(c rune) bool { return c < ' ' || c > '~' }) < 0
}
