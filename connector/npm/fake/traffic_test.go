package fake_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/connector/npm/fake"
)

// site is a fake with its proxied side and two backends, which say their own names.
type site struct {
	*client
	fake     *fake.Server
	front    string
	one, two int // ports of the backends
}

func newSite(t *testing.T, config fake.Config) site {
	t.Helper()
	serve := func(h http.Handler) *url.URL {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	backend := func(name string) int {
		u := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " ", r.Host, r.URL.Path) }))
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	w := site{one: backend("one"), two: backend("two")}
	config.Users = users()
	config.Hosts = []fake.Host{{Domain: "app.example.test", Scheme: "http", Forward: "127.0.0.1", Port: w.one}}
	w.fake, w.client = start(t, config)
	w.front = serve(w.fake.ProxyHandler()).String()
	return w
}

// visit asks the proxied site, and returns the backend's name, or the status when it is not 200.
func (w site) visit(t *testing.T, domain, path string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.front+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = domain
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	if a.StatusCode != http.StatusOK {
		return strconv.Itoa(a.StatusCode)
	}
	return string(body)
}

func (w site) put(t *testing.T, format string, args ...any) {
	t.Helper()
	w.do(t, "PUT /nginx/proxy-hosts/1", fmt.Sprintf(format, args...))
}

func (w site) do(t *testing.T, what, body string) {
	t.Helper()
	if status, _, answer := w.ask(t, step{do: what, send: body}); status >= 300 {
		t.Fatalf("%s %s: %d %s", what, body, status, answer)
	}
}

const (
	first  = "one app.example.test/"
	second = "two app.example.test/"
)

func (w site) see(t *testing.T, when, want string) {
	t.Helper()
	if got := w.visit(t, "app.example.test", "/"); got != want {
		t.Errorf("%s: the site answers %q, want %q", when, got, want)
	}
}

// TestTraffic_reload: a change that was answered still takes some requests to arrive.
func TestTraffic_reload(t *testing.T) {
	t.Parallel()
	w := newSite(t, fake.Config{})
	w.see(t, "at first", first)
	w.put(t, `{"forward_port":%d}`, w.two)
	for i := range 3 {
		w.see(t, fmt.Sprint("old workers ", i+1), first)
	}
	w.see(t, "new workers", second)
	w.see(t, "for good", second)
	w.fake.ReloadLag(0)
	w.put(t, `{"forward_port":%d}`, w.one)
	w.see(t, "without lag", first)
	if got := w.visit(t, "APP.example.test:443", "/deep/er"); got != "one APP.example.test:443/deep/er" {
		t.Errorf("case and port: %q", got)
	}
	w.fake.ReloadLag(1)
	w.put(t, `{"forward_port":%d}`, w.two)
	w.put(t, `{"forward_port":%d}`, w.two)
	w.see(t, "two reloads, old workers", first)
	w.see(t, "two reloads, new workers", second)
}

// TestTraffic_enabled: only disable takes a site off the air.
func TestTraffic_enabled(t *testing.T) {
	t.Parallel()
	w := newSite(t, fake.Config{})
	w.fake.ReloadLag(0)
	w.put(t, `{"enabled":false}`)
	w.see(t, "enabled:false", first)
	w.put(t, `{"forward_port":%d}`, w.two)
	w.see(t, "a change while enabled:false", first)
	w.put(t, `{"enabled":true}`)
	w.see(t, "enabled:true", second)
	w.do(t, "POST /nginx/proxy-hosts/1/disable", "")
	w.see(t, "disabled", "403")
	w.do(t, "POST /nginx/proxy-hosts/1/enable", "")
	w.see(t, "enabled", second)
	w.do(t, "DELETE /nginx/proxy-hosts/1", "")
	w.see(t, "deleted", "403")
}

// TestTraffic_broken: what the API says and what the site does are two things.
func TestTraffic_broken(t *testing.T) {
	t.Parallel()
	w := newSite(t, fake.Config{})
	w.fake.ReloadLag(0)
	w.fake.BreakNginx(1, "[emerg] made up")
	w.put(t, `{"forward_port":%d}`, w.two)
	w.see(t, "nginx refused the host", "403")
	w.fake.Repair()
	w.see(t, "repair alone brings nothing back", "403")
	w.put(t, `{"forward_port":%d}`, w.one)
	w.see(t, "the old value brings it back", first)

	w.fake.BreakOther()
	if status, _, _ := w.ask(t, step{do: "PUT /nginx/proxy-hosts/1", send: fmt.Sprintf(`{"forward_port":%d}`, w.two)}); status != 500 {
		t.Errorf("PUT while another file is broken: %d", status)
	}
	w.see(t, "500: row changed, site not", first)
	w.fake.Repair()

	w.put(t, `{"forward_port":1}`)
	w.see(t, "a dead port", "502")
	w.put(t, `{"forward_host":"no..host"}`)
	w.see(t, "a name that does not resolve", "502")
	w.put(t, `{"forward_host":"127.0.0.1\"; return 418; #"}`)
	w.see(t, "config in forward_host", "418")
}

// TestTraffic_access: an unknown list is no list, a list without the caller locks out.
func TestTraffic_access(t *testing.T) {
	t.Parallel()
	w := newSite(t, fake.Config{Congratulations: true})
	w.fake.ReloadLag(0)
	list := func(address, directive string) {
		w.do(t, "POST /nginx/access-lists", fmt.Sprintf(`{"name":"l","clients":[{"address":%q,"directive":%q}]}`, address, directive))
	}
	list("10.0.0.0/8", "allow")
	list("127.0.0.1", "allow")
	list("all", "deny")
	for id, want := range []string{first, "403", first, "403", first} { // 4 does not exist
		w.put(t, `{"access_list_id":%d}`, id)
		w.see(t, fmt.Sprint("list ", id), want)
	}
	w.put(t, `{"access_list_id":1}`)
	w.do(t, "DELETE /nginx/access-lists/1", "")
	w.see(t, "the list is deleted, the site not saved", "403")
	w.put(t, `{"meta":{}}`)
	w.see(t, "saved again", first)
	if got := w.visit(t, "nobody.example.test", "/"); !strings.Contains(got, "Congratulations") {
		t.Errorf("an unknown domain is answered %q", got)
	}
}

// TestTraffic_locations: a custom location has a backend of its own.
func TestTraffic_locations(t *testing.T) {
	t.Parallel()
	w := newSite(t, fake.Config{})
	w.fake.ReloadLag(0)
	w.put(t, `{"locations":[{"path":"/api","forward_scheme":"http","forward_host":"127.0.0.1","forward_port":%d}]}`, w.two)
	w.see(t, "the root", first)
	if got := w.visit(t, "app.example.test", "/api/x"); got != "two app.example.test/api/x" {
		t.Errorf("the location is answered %q", got)
	}
}

// TestTraffic_recorded does what was done to a real server, and compares what its nginx served then.
func TestTraffic_recorded(t *testing.T) {
	t.Parallel()
	var recorded []any
	load(t, "npm/real-traffic-2.15.1.json", &recorded)
	w := newSite(t, fake.Config{})
	ports := map[string]string{first: "8081", second: "8082", "403": "<HTTPError 403: 'Forbidden'>", "502": "<HTTPError 502: 'Bad Gateway'>"}
	see := func() string { return ports[w.visit(t, "app.example.test", "/")] }
	call := func(what, body string) (int, any) {
		status, _, answer := w.ask(t, step{do: what + " /nginx/proxy-hosts/1" + map[bool]string{true: "/" + body}[what == "POST"],
			send: map[bool]string{true: body}[what == "PUT"]})
		var v any
		if err := json.Unmarshal(answer, &v); err != nil {
			t.Fatal(err)
		}
		return status, v
	}
	meta := func(v any) map[string]any { return v.(map[string]any)["meta"].(map[string]any) }
	settled := func() string { // the recording waited for the reload
		for range 3 {
			see()
		}
		return see()
	}
	got := []any{[]any{"before", see()}}
	status, _ := call("PUT", fmt.Sprintf(`{"forward_port":%d}`, w.two))
	got = append(got, []any{"put", float64(status), 0.54})
	served := []any{}
	for range 20 {
		served = append(served, see())
	}
	got = append(got, []any{"traffic after PUT reply", served})
	status, v := call("PUT", `{"enabled":false}`)
	got = append(got, []any{"put enabled=false ->", float64(status), v.(map[string]any)["enabled"], "traffic:", settled()})
	call("PUT", `{"enabled":true}`) // not in the recording, but the server refuses to disable what the row says is off
	for _, act := range []string{"disable", "enable"} {
		status, v = call("POST", act)
		got = append(got, []any{"POST " + act + " ->", float64(status), v, "traffic:", settled()})
	}
	for _, change := range [][2]string{{"bad advanced ->", `{"advanced_config":"bogus_directive on;"}`}, {"fixed ->", `{"advanced_config":""}`}} {
		status, v = call("PUT", change[1])
		got = append(got, []any{change[0], float64(status), meta(v)["nginx_online"], "traffic:", settled()})
	}
	for _, change := range [][2]string{{"unresolvable host ->", `{"forward_host":"no..host"}`}, {"dead port ->", `{"forward_host":"127.0.0.1","forward_port":1}`}} {
		status, v = call("PUT", change[1])
		got = append(got, []any{change[0], float64(status), meta(v), "traffic:", settled()})
	}
	if d := cmp.Diff(recorded, got); d != "" {
		t.Errorf("served then and now (-recorded +fake):\n%s", d)
	}
}
