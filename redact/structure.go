package redact

import (
	"regexp"
	"strings"
)

var (
	names = regexp.MustCompile(`(?i)pass|secret|token|apikey|api_key|api-key|private|credential|community`)

	pemBlock = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----[^-]*(?:-----END [A-Z0-9 ]*-----)?`)
	userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.\-]*://)([^/\s@"'<>]+)@`)
	header   = regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s*[:=]\s*["']?)([^\r\n"']+)`)
	pveToken = regexp.MustCompile(`(PVEAPIToken[= ])([^\s"',;]+)`)
	scheme   = regexp.MustCompile(`(?i)\b(bearer |basic |token )([A-Za-z0-9._~+/\-]{16,}=*)`)
	member   = regexp.MustCompile(`(?i)([\w.\-]*(?:pass|secret|token|apikey|api_key|api-key|private|credential|community)[\w.\-]*)` +
		`((?:\\?["'])?\s*[:=]\s*)` +
		`(\[redacted:[a-z]+\]|\\"(?:[^"\\]|\\[^"])*\\"|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,;&}\]"'\\]+)`)
)

// secretName reports whether a member of this name holds a secret.
func secretName(name string) bool { return names.MatchString(name) }

// structure hides what stands where secrets stand.
func structure(s string) string {
	s = pemBlock.ReplaceAllString(s, mark("key"))
	s = hide(s, userinfo, "userinfo", "@")
	s = hide(s, header, "header", "")
	s = hide(s, pveToken, "token", "")
	s = hide(s, scheme, "token", "")
	return hide(s, member, "member", "")
}

// hide replaces the last group of each match, unless nothing is left to hide there.
func hide(s string, pattern *regexp.Regexp, kind, after string) string {
	return pattern.ReplaceAllStringFunc(s, func(found string) string {
		groups := pattern.FindStringSubmatch(found)
		value := groups[len(groups)-1]
		switch bare := strings.Trim(value, `"'\`); bare {
		case "", "true", "false", "null":
			return found
		}
		if strings.Contains(value, "[redacted:") {
			return found
		}
		quote := ""
		if i := strings.IndexFunc(value, func(r rune) bool { return !strings.ContainsRune(`"'\`, r) }); i > 0 {
			quote = value[:i]
		}
		return strings.Join(groups[1:len(groups)-1], "") + quote + mark(kind) + quote + after
	})
}
