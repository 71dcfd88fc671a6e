package redact

import (
	"math"
	"slices"
	"strings"
)

// weight is how much a name says that its value is a secret.
type weight int

const (
	none   weight = iota
	weak          // only if the value looks like one, as for "key"
	strong        // unless the value plainly is none
)

// Words of names. A list in a string is read as a set of words.
var (
	strongWords = set(`password passwords passwd passphrase passcode passwort kennwort pass pwd psk secret secrets token tokens
		credential credentials cred creds community communities apikey apikeys privkey jwt otp totp bearer sid`)
	strongEnds = strings.Fields(`password passwd passphrase passwort secret secrets token apikey pwd authkey accesskey secretkey
		privatekey credentials community psk sessionid authtok`)
	weakWords = set(`key keys auth authorization session signature sig nonce salt login`)
	keyOwners = set(`api access secret private auth encryption encrypt decryption signing sign master license shared preshared
		storage network admin root account service session hmac aes deploy integration subscription rndc tsig wg security authorized`)
	plainOwners = set(`public pub primary foreign next page cache sort partition max min num total count routing has is recv trusted`)
	// metaWords end a name that speaks about a secret without holding it.
	metaWords = set(`id ids name names type types expiry expires expiration expired lifetime ttl length len size count limit
		limits policy policies url uri endpoint path file files filename dir directory field fields label min max enabled disabled
		required valid version format algorithm algo age hint prompt manager store source usage used rotation status state error
		errors ref reference provider index reset change changed request requests attempts attempt retry retries strength prefix
		created updated at mode method set chars budget window bucket ring board word words stroke frame vault selector service
		role scope scopes issuer audience host port user username in out per sec rate number env variable fingerprint`)
	// passWords end with "pass" and mean something else.
	passWords = set(`bypass compass encompass surpass trespass overpass underpass multipass sshpass keepass gopass lastpass`)
	// keyWords end with "key" and mean something else.
	keyWords = set(`monkey donkey hockey jockey turkey whiskey hotkey smokey`)
	// plainValues say something about a secret.
	plainValues = set(`true false null none nil yes no on off undefined required optional expired invalid missing empty unset set
		ok failed failure success valid unknown default enabled disabled changed unchanged updated rotated revoked rejected
		accepted denied not string str text bool boolean int integer number object array n/a na all any changeme redacted hidden
		removed masked prompt ask stdin file and or is to for the a an of in with from must should can will has was are be when
		if`)
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

// weigh judges a name by its words.
func weigh(name string) weight {
	words := split(name)
	if len(words) == 0 || name == "PWD" || name == "OLDPWD" || metaWords[words[len(words)-1]] {
		return none
	}
	result := none
	for i, w := range words {
		owner := ""
		if i > 0 {
			owner = words[i-1]
		}
		switch {
		case plainOwners[owner]:
		case w == "community" && i+1 < len(words) && words[i+1] != "string": // a community of people
		case strongWords[w], slices.ContainsFunc(strongEnds, func(end string) bool { return strings.HasSuffix(w, end) }),
			strings.HasSuffix(w, "pass") && !passWords[w],
			strings.HasPrefix(w, "key") && len(w) <= 4 && keyOwners[owner]:
			return strong
		case weakWords[w], strings.HasSuffix(w, "key") && !keyWords[w], strings.HasSuffix(w, "salt"):
			result = weak
		}
	}
	return result
}

// split parts a name into its words, in lower case and without the numbers
// behind them: DB_PASSWORD2 and dbPassword2 are db, password.
func split(name string) []string {
	var words []string
	start := 0
	flush := func(end int) {
		if w := strings.TrimRight(strings.ToLower(name[start:end]), "0123456789"); w != "" {
			words = append(words, w)
		}
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case !isAlnum(c):
			flush(i)
			start = i + 1
		case i > start && isUpper(c) && (!isUpper(name[i-1]) || i+1 < len(name) && isLower(name[i+1])):
			flush(i)
			start = i
		}
	}
	flush(len(name))
	return words
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// plausible reports whether a value can be the secret its name speaks of.
func plausible(value string, w weight) bool {
	value = strings.Trim(value, " \t")
	switch {
	case value == "", w == none, isPlaceholder(value), plainValues[strings.ToLower(strings.Trim(value, ".:!,"))]:
		return false
	case w == weak:
		return len(value) >= 10 && looksRandom(value)
	}
	return true
}

// isPlaceholder reports whether a value says where the secret comes from, or
// is masked.
func isPlaceholder(v string) bool {
	switch {
	case strings.Trim(v, "*") == "", strings.Trim(v, "xX") == "", strings.Trim(v, ".-_#•") == "":
		return true
	case strings.HasPrefix(v, "${") || strings.HasPrefix(v, "{{") || strings.HasPrefix(v, "$(") || strings.HasPrefix(v, "<") && strings.HasSuffix(v, ">"):
		return true
	case len(v) == 2 && v[0] == '%':
		return true
	}
	// $DB_PASSWORD
	return v[0] == '$' && len(v) > 1 && !isDigit(v[1]) && strings.Trim(v[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
}

// looksRandom reports whether a value is no word, path, address or number.
func looksRandom(v string) bool {
	digits, letters := 0, 0
	for i := range len(v) {
		switch c := v[i]; {
		case isDigit(c):
			digits++
		case isAlnum(c):
			letters++
		case c == ' ', c == '\t', c == '(', c == '[', c == '{':
			return false
		}
	}
	if digits == 0 && isBasic(v) {
		return true
	}
	if digits == 0 || letters == 0 || v[0] == '/' || v[0] == '.' || v[0] == '~' || strings.Contains(v, "://") {
		return false
	}
	return entropy(v) >= 2.8
}

// entropy is how many bits each byte of v tells, judged by v alone.
func entropy(v string) float64 {
	var counts [256]int
	for i := range len(v) {
		counts[v[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(v))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
