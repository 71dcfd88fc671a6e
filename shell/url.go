package shell

import (
	"slices"
	"strings"
)

// url judges the address of a request that only gets: the address itself
// carries data to whoever it names.
func (w *walker) url(v *word) (effects, string) {
	if v.glob && !v.many && !strings.ContainsRune(v.text, wild) && loopback(hostOf(strings.TrimPrefix(v.text, "http://"))) {
		// No file is called so: the shell hands it over as it stands.
		plain := *v
		plain.text, plain.known, plain.glob = strings.NewReplacer("\x01", "*", "\x02", "?").Replace(v.text), true, false
		return w.url(&plain)
	}
	if !v.known {
		rest, ok := strings.CutPrefix(v.text, "http://")
		// What is not known must come after the end of the host and its port.
		if at := strings.IndexAny(rest, "/?#\x00"); ok && at >= 0 && rest[at] != 0 && loopback(hostOf(rest)) && !strings.ContainsAny(v.text, "\x01\x02@") {
			return bitNetRead, "asks this machine"
		}
		return bitNetSend, "the address " + v.show() + " cannot be seen and can carry data out"
	}
	w.touch("url", v.text)
	scheme, rest, ok := strings.Cut(v.text, "://")
	if !ok {
		scheme, rest = "http", v.text
	}
	switch strings.ToLower(scheme) {
	case "http", "https":
	case "file":
		file := *v
		file.text = "/" + strings.TrimLeft(rest, "/")
		w.pathRead(&file, "url/file", false)
		return 0, ""
	default:
		return bitNetSend, "the address " + v.text + " uses " + scheme
	}
	host := hostOf(rest)
	switch {
	case strings.ContainsAny(v.text, "{}[]") && !strings.HasPrefix(rest, "[::1]"):
		return bitNetSend, "the address " + v.text + " stands for several"
	case host == "169.254.169.254" || host == "metadata.google.internal" || host == "[fd00:ec2::254]":
		return bitReadSecret, "asks the metadata service, which gives out credentials"
	case loopback(host):
		for _, f := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("/?&=;", r) }) {
			if drasticWord(f) || slices.Contains([]string{"restart", "stop", "reload", "quit", "exit", "start", "set", "update", "create"}, f) {
				return bitNetSend, "the address " + v.text + " tells of a change: " + f
			}
		}
		return bitNetRead, "asks this machine"
	}
	return bitNetSend, "asks " + host + ", and the address can carry data there"
}

// hostOf cuts the host out of what follows the scheme, without the port.
func hostOf(rest string) string {
	end := strings.IndexAny(rest, "/?#\x00")
	if end < 0 {
		end = len(rest)
	}
	host := rest[:end]
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if strings.HasPrefix(host, "[") {
		if i := strings.IndexByte(host, ']'); i > 0 {
			return strings.ToLower(host[:i+1])
		}
	}
	host, _, _ = strings.Cut(host, ":")
	return strings.ToLower(host)
}

func loopback(host string) bool {
	return host == "localhost" || host == "[::1]" || strings.HasPrefix(host, "127.") && strings.Trim(host, "0123456789.") == ""
}
