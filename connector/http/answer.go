package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"writ"
	"writ/connector"
)

// Answer is a whole answer of a target, for a dialect to judge.
type Answer struct {
	Method string // of the request, upper case
	Path   string // of the request, escaped, without query
	Write  bool
	Status int
	Reason string // the reason phrase as sent; "" over HTTP/2, and often elsewhere
	Header http.Header
	Body   []byte
}

// readAnswer reads an answer to its end.
func readAnswer(q *http.Request, a *http.Response) (Answer, error) {
	whole := Answer{
		Method: q.Method,
		Path:   q.URL.EscapedPath(),
		Write:  writing(q.Method),
		Status: a.StatusCode,
		Reason: strings.TrimSpace(strings.TrimPrefix(a.Status, strconv.Itoa(a.StatusCode))),
		Header: a.Header,
	}
	var err error
	if whole.Body, err = io.ReadAll(a.Body); err != nil {
		return Answer{}, err
	}
	if e := a.Header.Get("Content-Encoding"); e != "" && e != "identity" && len(whole.Body) > 0 {
		return Answer{}, fmt.Errorf("the answer is encoded as %q although identity was asked for", Quote(e))
	}
	return whole, nil
}

// Means returns the error that the answer is: a sentence with method, path and
// status, then what the target said of it. said may hold anything; it is
// cut to 300 characters and made printable.
func (a Answer) Means(outcome writ.Outcome, reason, said string) *connector.Error {
	if said = Quote(said); said == "" {
		said = http.StatusText(a.Status)
	}
	return connector.Errorf(outcome, reason, a.Status, "The system answered %s %s with %d: %s", a.Method, a.Path, a.Status, said)
}

// Said is what a target says about an error, for dialects that know no better:
// the body, or else the reason phrase.
func (a Answer) Said() string {
	if b := bytes.TrimSpace(a.Body); len(b) > 0 {
		return string(b)
	}
	return a.Reason
}

// maxQuote is how much of a target's text an error carries, in characters.
const maxQuote = 300

// Quote makes a target's text fit for a sentence: at most 300 characters, all of
// them printable, so that it can neither forge lines nor turn the direction.
func Quote(text string) string {
	characters := []rune(strings.TrimSpace(text[:min(len(text), 8*maxQuote)]))
	cut := len(characters) > maxQuote
	if cut {
		characters = characters[:maxQuote-1]
	}
	for i, r := range characters {
		switch {
		case unicode.IsSpace(r):
			characters[i] = ' '
		case !unicode.IsPrint(r):
			characters[i] = unicode.ReplacementChar
		}
	}
	if cut {
		characters = append(characters, '…')
	}
	return string(characters)
}

// maxValues bounds how many JSON values one answer may have: as values in memory
// they are some forty times as large as "[],[],[]".
const maxValues = 1 << 20

// decode returns the body as data if it is JSON, else as text.
func (a Answer) decode() (data any, text string, err error) {
	body := bytes.TrimSpace(a.Body)
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	declared := kind == "application/json" || strings.HasSuffix(kind, "+json")
	if len(body) == 0 {
		return nil, "", nil
	}
	if declared || body[0] == '{' || body[0] == '[' {
		data, err = decodeJSON(body)
		if err == nil || declared {
			return data, "", err
		}
	}
	return nil, strings.ToValidUTF8(string(a.Body), string(unicode.ReplacementChar)), nil
}

// decodeJSON decodes one JSON value. A number written as an integer is an int64,
// or a string if a double could not hold it; another number is a float64.
func decodeJSON(body []byte) (any, error) {
	if bytes.Count(body, []byte(","))+bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) > maxValues {
		return nil, errors.New("the JSON has too many values")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is text after the JSON value")
	}
	return plain(v), nil
}

// maxWhole is the largest whole number below which every other is exact as a double.
const maxWhole = 1<<53 - 1

// plain replaces each json.Number in v.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			v[name] = plain(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plain(inner)
		}
	case json.Number:
		if !strings.ContainsAny(v.String(), ".eE") {
			if n, err := v.Int64(); err == nil && n >= -maxWhole && n <= maxWhole {
				return n
			}
			return v.String()
		}
		if f, err := v.Float64(); err == nil && !math.IsInf(f, 0) {
			return f
		}
		return v.String()
	}
	return v
}
