package fake_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ/connector/npm/fake"
)

// record is one exchange with a real server, or a look at its files (then there is no request).
type record struct {
	Label   string
	Request *struct {
		Method, Path string
		Auth         bool
		Headers      map[string]string
		Body         any
	}
	Response struct {
		Status int
		Body   any
	}
}

// load reads a file below WRIT_SPECS. In CI it must be there.
func load(t *testing.T, name string, into any) {
	t.Helper()
	dir := os.Getenv("WRIT_SPECS")
	if dir == "" && os.Getenv("CI") == "true" {
		t.Fatal("WRIT_SPECS is not set: CI must check the fakes against the vendors' schemas and recordings")
	}
	if dir == "" {
		t.Skip("WRIT_SPECS is not set: set it to the directory of the vendors' schemas and recordings to check the fake against them")
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// leftOut names the records that are not replayed, and why. Some of them change the server, which their entry in
// happenings does instead.
func leftOut() map[string]string {
	const (
		file  = "a look at files, no exchange"
		other = "an endpoint the fake does not have"
	)
	return map[string]string{
		"files-after-bad-advanced": file, "conf-port-line-after-broken": file, "conf-exists-after-put-enabled-false": file,
		"conf-acl-lines": file, "concurrent-lost-updates": "the recorder's own count",
		"user-create": other, "user-auth": other, "user-perm": other, "user-perm-manage-own": other,
		"report-hosts": other, "settings": other, "schema": other,
	}
}

// TestReplay sends what was sent to a real server, in the same order, and compares status, shape, values and texts.
func TestReplay(t *testing.T) {
	t.Parallel()
	var records []record
	load(t, "npm/real-transcript-2.15.1.json", &records)
	now := time.Date(2026, 11, 29, 16, 24, 45, 0, time.UTC)
	s, c := start(t, fake.Config{Users: users()[:1], Now: func() time.Time { return now }})
	happenings := map[string]func(){
		"list-expired-token":     func() { now = now.Add(2 * time.Second) },
		"put-while-nginx-broken": s.BreakOther,
		"put-after-repair":       s.Repair,
		"user-create":            func() { s.AddUser(fake.User{Email: "agent@example.test", Secret: password}) },
		"user-perm":              func() { s.SetUser(2, "all", "view") },
		"user-perm-manage-own":   func() { s.SetUser(2, "user", "manage") },
	}
	// Of these two at the same time the second answer is of the request that was taken first: it knows nothing of the
	// other.
	records[101], records[102] = records[102], records[101]
	short := ""
	replayed, skipped := 0, leftOut()
	missing := maps.Clone(skipped)
	for i, r := range records {
		if happen := happenings[r.Label]; happen != nil {
			happen()
		}
		if _, out := skipped[r.Label]; out {
			delete(missing, r.Label)
			continue
		}
		if r.Request == nil {
			t.Errorf("record %d, %s, has no request: say in leftOut why", i, r.Label)
			continue
		}
		status, _, body := c.ask(t, r.step(t, short))
		if r.Label == "token-short" {
			var got struct{ Token string }
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			short = got.Token
		}
		replayed++
		var have any
		if err := json.Unmarshal(body, &have); err != nil {
			t.Errorf("record %d, %s: %v", i, r.Label, err)
		}
		want, have := settle(r.Label, r.Response.Body), settle(r.Label, have)
		if d := cmp.Diff(want, have); status != r.Response.Status || d != "" {
			t.Errorf("record %d, %s: status %d, recorded %d (-recorded +fake):\n%s", i, r.Label, status, r.Response.Status, d)
		}
	}
	for label := range missing {
		t.Errorf("leftOut names %s, which is not in the recording", label)
	}
	t.Logf("%d of %d records replayed; left out: %v", replayed, len(records), slices.Sorted(maps.Keys(skipped)))
	if replayed < 112 {
		t.Errorf("only %d records were replayed", replayed)
	}
}

// step makes the request of a record again. Secrets and tokens were cut out of the recording.
func (r record) step(t *testing.T, short string) step {
	t.Helper()
	s := step{do: r.Request.Method + " " + strings.TrimPrefix(r.Request.Path, "/api"), as: "-"}
	text, isText := r.Request.Body.(string)
	switch {
	case isText:
		s.send, s.form = text, strings.Contains(r.Request.Headers["Content-Type"], "form")
	case r.Request.Body != nil:
		b, err := json.Marshal(r.Request.Body)
		if err != nil {
			t.Fatal(err)
		}
		secret := password
		if r.Label == "token-wrong-pass" {
			secret = "wrong"
		}
		s.send = strings.ReplaceAll(string(b), `\u003credacted\u003e`, secret)
	}
	switch {
	case !r.Request.Auth:
	case r.Label == "list-garbage-token":
		s.as = "raw garbage"
	case r.Label == "list-tampered-token":
		s.as = "raw " + strings.Repeat("fake.", 2) + "x"
	case r.Label == "list-expired-token":
		s.as = "raw " + short
	case strings.HasPrefix(r.Label, "user-"):
		s.as = "agent@example.test"
	default:
		s.as = ""
	}
	return s
}

// settle takes out of an answer what cannot be equal: times, tokens, and what the recorded administrator was called.
// Of an audit log only the newest entry is kept, without its number: the recording has entries about users.
func settle(label string, v any) any {
	if list, isList := v.([]any); isList && strings.HasPrefix(label, "audit") {
		newest := list[0].(map[string]any)
		delete(newest, "id")
		v = newest
	}
	return mask(v)
}

func mask(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			switch name {
			case "created_on", "modified_on", "token", "expires", "expiredAt", "name", "nickname":
				v[name] = fmt.Sprintf("%T", member)
			case "nginx_err":
				if text, ok := member.(string); ok {
					v[name] = regexp.MustCompile(`[0-9]+`).ReplaceAllString(text, "0")
				}
			default:
				v[name] = mask(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i])
		}
	}
	return v
}
