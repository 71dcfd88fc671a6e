package fake_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/connector/proxmox/fake"
)

const (
	admin   = "root@pam!writ"
	auditor = "root@pam!look"
	secret  = "not-a-secret-0001"
)

// world is a demo cluster behind a real server, whose every exchange is compared with Proxmox's schema.
type world struct {
	*fake.Server
	t      *testing.T
	url    string
	vendor *fake.Vendor
	token  string
}

// newWorld serves the demo cluster. The admin may do everything, the auditor may look.
func newWorld(t *testing.T, config fake.Config) *world {
	t.Helper()
	tokens := map[string]fake.Token{
		admin:   {Secret: secret, Privileges: map[string][]string{"/": fake.Administrator()}},
		auditor: {Secret: secret, Privileges: map[string][]string{"/": fake.Auditor()}},
	}
	for id, token := range config.Tokens {
		tokens[id] = token
	}
	config.Tokens = tokens
	w := &world{Server: fake.NewDemo(config), t: t, vendor: fake.LoadVendor(t), token: admin}
	srv := httptest.NewServer(w.Server)
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

// as is the same cluster, seen with another token.
func (w *world) as(token string) *world {
	other := *w
	other.token = token
	return &other
}

// answer is what came back.
type answer struct {
	Status  string // "500 CT is locked (backup)"
	Data    any
	Message string
	Errors  map[string]any
	Raw     string
	Closed  bool
}

// form makes "a=1&b=2" of pairs.
func form(pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values.Encode()
}

// call sends one request below the API's base, with a form body unless it is a GET or DELETE.
func (w *world) call(method, path, body string) answer {
	w.t.Helper()
	q := w.request(method, "/api2/json"+path, body)
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return w.send(q)
}

func (w *world) request(method, path, body string) *http.Request {
	w.t.Helper()
	q, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

func (w *world) send(q *http.Request) answer {
	w.t.Helper()
	if q.Header.Get("Authorization") == "" {
		q.Header.Set("Authorization", "PVEAPIToken="+w.token+"="+secret)
	}
	var body []byte
	if q.GetBody != nil {
		r, _ := q.GetBody()
		body, _ = io.ReadAll(r)
	}
	r, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := answer{Status: r.Status, Raw: string(raw), Closed: r.Close}
	if len(raw) > 0 {
		a.decode(w.t, raw)
	}
	w.audit(q, string(body), a)
	return a
}

func (a *answer) decode(t *testing.T, raw []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(a); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, raw)
	}
}

// audit holds one exchange against Proxmox's schema: what was accepted must be acceptable, the answer must have the
// declared type, and what was refused as bad parameters must be what the schema refuses.
func (w *world) audit(q *http.Request, body string, a answer) {
	w.t.Helper()
	path := strings.TrimPrefix(q.URL.Path, "/api2/json")
	if w.vendor == nil || q.Header.Get("Content-Type") == "application/json" {
		return
	}
	m, uri, ok := w.vendor.Find(q.Method, path)
	if !ok {
		if a.Status[:3] == "200" {
			w.t.Errorf("%s %s was answered, but Proxmox has no such method", q.Method, path)
		}
		return
	}
	given := map[string]string{}
	for _, text := range []string{body, q.URL.RawQuery} {
		values, _ := url.ParseQuery(text)
		for name := range values {
			given[name] = strings.Join(values[name], "\x00")
		}
	}
	maps.Copy(given, uri)
	delete(given, "_dc") // dropped before the schema is asked
	refused := m.Refused(given)
	switch a.Status[:3] {
	case "200":
		if len(refused) > 0 {
			w.t.Errorf("%s %s was accepted, but Proxmox's schema refuses %v", q.Method, path, refused)
		}
		for _, odd := range m.Returns.Odd(a.Data) {
			w.t.Errorf("%s %s: %s", q.Method, path, odd)
		}
	case "400":
		named := slices.Collect(func(yield func(string) bool) {
			for name, text := range a.Errors {
				if isSchemaError(text.(string)) && !yield(name) {
					return
				}
			}
		})
		slices.Sort(named)
		if len(named) > 0 && !slices.Equal(named, refused) {
			w.t.Errorf("%s %s: the fake refuses %v, Proxmox's schema %v", q.Method, path, named, refused)
		}
	}
}

// isSchemaError tells the schema's refusals from a method's own, and from formats whose rules are not in the schema.
func isSchemaError(text string) bool {
	if strings.HasPrefix(text, "invalid format") {
		return strings.HasPrefix(text, "invalid format - format error") && !strings.Contains(text, "invalid format - value")
	}
	for _, start := range []string{"property is ", "type check", "value ", "missing property"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// row is one request to a demo cluster and all that comes of it.
type row struct {
	name    string
	config  fake.Config
	prepare func(*fake.Server)
	token   string // "" is the admin
	call    string // "PUT /nodes/pve/lxc/121/config"
	body    string
	status  string            // the whole status line
	errors  map[string]string // of a 400
	data    string            // JSON of a 200's data; "" is not looked at
	raw     bool              // refused by the HTTP server: no body
	writes  int
}

func runRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, r.config)
			if r.prepare != nil {
				r.prepare(w.Server)
			}
			if r.token != "" {
				w.token = r.token
			}
			before := w.Guests()
			method, path, _ := strings.Cut(r.call, " ")
			a := w.call(method, path, r.body)
			if a.Status != r.status {
				t.Fatalf("answered %q %s, want %q", a.Status, a.Raw, r.status)
			}
			if n := len(w.Writes()); n != r.writes {
				t.Errorf("%d writes recorded, want %d", n, r.writes)
			}
			if a.Status == "200 OK" {
				checkData(t, a, r.data)
				return
			}
			checkRefusal(t, a, r)
			if d := cmp.Diff(before, w.Guests()); d != "" {
				t.Errorf("a refusal changed the guests (-before +after):\n%s", d)
			}
		})
	}
}

func checkData(t *testing.T, a answer, data string) {
	t.Helper()
	if data == "" {
		return
	}
	var want answer
	want.decode(t, []byte(`{"data":`+data+`}`))
	if d := cmp.Diff(want.Data, a.Data); d != "" {
		t.Errorf("data (-want +got):\n%s", d)
	}
}

// checkRefusal: the reason is in the status line and, unless the server is an old one, in the body too.
func checkRefusal(t *testing.T, a answer, r row) {
	t.Helper()
	if !a.Closed {
		t.Error("the connection is kept alive after a refusal")
	}
	if r.raw {
		if a.Raw != "" {
			t.Errorf("the HTTP server itself refused, with body %q", a.Raw)
		}
		return
	}
	want := map[string]any{"data": nil}
	if !r.config.LegacyErrors {
		want["message"] = r.status[4:] + "\n"
	}
	if r.errors != nil {
		errors := map[string]any{}
		for name, text := range r.errors {
			errors[name] = text
		}
		want["errors"] = errors
	}
	got := map[string]any{}
	if err := json.Unmarshal([]byte(a.Raw), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("body (-want +got):\n%s", d)
	}
}

// config reads the configuration of a container.
func (w *world) config(vmid string) map[string]any {
	w.t.Helper()
	a := w.call("GET", "/nodes/pve/lxc/"+vmid+"/config?current=1", "")
	if a.Status != "200 OK" {
		w.t.Fatalf("config of %s: %s", vmid, a.Status)
	}
	return a.Data.(map[string]any)
}

// must makes a call that must succeed.
func (w *world) must(method, path, body string) any {
	w.t.Helper()
	a := w.call(method, path, body)
	if a.Status != "200 OK" {
		w.t.Fatalf("%s %s: %s %s", method, path, a.Status, a.Raw)
	}
	return a.Data
}

// task waits for a task as a client does and returns its exit status.
func (w *world) task(upid any) string {
	w.t.Helper()
	for range 10 {
		status := w.must("GET", "/nodes/pve/tasks/"+url.PathEscape(upid.(string))+"/status", "").(map[string]any)
		if status["status"] == "stopped" {
			return status["exitstatus"].(string)
		}
	}
	w.t.Fatal("the task does not end")
	return ""
}
