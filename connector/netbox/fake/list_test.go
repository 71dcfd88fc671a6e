package fake_test

import (
	"encoding/json"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"writ/connector/connectortest"
	"writ/connector/netbox/fake"
)

func listRows() []row {
	many := step{do: "POST /api/extras/tags/", send: `[{"name":"a","slug":"a"},{"name":"b","slug":"b"},{"name":"c","slug":"c","weight":1}]`, status: 201, want: `[{"id":2},{"id":3},{"id":4}]`}
	small := fake.Config{PageSize: 2, MaxPageSize: 3}
	get := func(path, want string) step { return step{do: "GET /api/" + path, status: 200, want: want} }
	return []row{
		{name: "pages by limit and offset", config: small, steps: []step{many,
			get("extras/tags/", `{"count":4,"next":"BASE/api/extras/tags/?limit=2&offset=2","previous":null,"results":[{"slug":"c"},{"slug":"a"}]}`),
			get("extras/tags/?offset=2&limit=2", `{"next":null,"previous":"BASE/api/extras/tags/?limit=2","results":[{"slug":"b"},{"slug":"managed"}]}`),
			get("extras/tags/?limit=1&offset=2", `{"next":"BASE/api/extras/tags/?limit=1&offset=3","previous":"BASE/api/extras/tags/?limit=1&offset=1","results":[{"slug":"b"}]}`),
			get("extras/tags/?limit=0", `{"results":[{},{},{}]}`), get("extras/tags/?limit=99", `{"results":[{},{},{}]}`),
			get("extras/tags/?limit=x", `{"results":[{},{}]}`), get("extras/tags/?offset=9", `{"count":4,"next":null,"results":[]}`),
			{do: "GET /api/extras/tags/", header: "X-Forwarded-Proto: https", status: 200, want: `{"next":"*"}`, heads: map[string]string{"ETag": ""}},
		}, changes: 3},
		{name: "pages by cursor", config: small, steps: []step{many,
			get("extras/tags/?start=0", `{"count":null,"next":"BASE/api/extras/tags/?limit=2&start=3","previous":null,"results":[{"id":1},{"id":2}]}`),
			get("extras/tags/?start=3&limit=2", `{"count":null,"next":null,"results":[{"id":3},{"id":4}]}`),
			{do: "GET /api/extras/tags/?start=0&ordering=name", status: 400, want: `{"detail":"*"}`},
		}, changes: 3},
		{name: "ordering", steps: []step{many,
			get("extras/tags/?ordering=slug", `{"results":[{"slug":"a"},{"slug":"b"},{"slug":"c"},{"slug":"managed"}]}`),
			get("extras/tags/?ordering=-id", `{"results":[{"id":4},{"id":3},{"id":2},{"id":1}]}`),
		}, changes: 3},
		{name: "filters", steps: []step{many,
			get("extras/tags/?slug=a&slug=b", `{"count":2}`), get("extras/tags/?slug=a&name=b", `{"count":0}`),
			get("extras/tags/?name=A", `{"count":0}`), get("extras/tags/?q=MANA", `{"count":1}`), get("extras/tags/?id=1", `{"count":1}`),
			get("ipam/ip-addresses/?address=192.0.2.1", `{"count":1}`), get("ipam/ip-addresses/?address=192.0.2.1/24", `{"count":1}`),
			get("ipam/ip-addresses/?address=192.0.2.1/32", `{"count":0}`), get("ipam/ip-addresses/?address=nonsense", `{"count":0}`),
			get("ipam/ip-addresses/?parent=192.0.2.0/24", `{"count":1}`), get("ipam/ip-addresses/?parent=192.0.2.77/25", `{"count":1}`),
			get("ipam/ip-addresses/?parent=198.51.100.0/24", `{"count":0}`), get("ipam/ip-addresses/?parent=x", `{"count":0}`),
			get("ipam/ip-addresses/?tag=managed", `{"count":1}`), get("ipam/ip-addresses/?status=reserved", `{"count":0}`),
			get("ipam/prefixes/?prefix=192.0.2.0/24", `{"count":1}`), get("ipam/prefixes/?contains=192.0.2.7", `{"count":1}`),
			get("ipam/prefixes/?contains=198.51.100.7", `{"count":0}`),
			get("virtualization/virtual-machines/?site=lab", `{"count":1}`), get("virtualization/virtual-machines/?site=x", `{"count":0}`),
		}, changes: 3},
		{name: "a filter that does not exist selects everything", steps: []step{many, get("extras/tags/?slgu=a", `{"count":4}`)}, changes: 3},
		{name: "parts of an object", steps: []step{
			get("extras/tags/?fields=id,slug", `{"results":[{"id":1,"slug":"managed"}]}`),
			get("ipam/prefixes/1/?brief=true", `{"id":1,"prefix":"192.0.2.0/24","_depth":0}`),
			get("ipam/prefixes/1/?omit=tags", `{"id":1}`),
		}},
		{name: "sites and virtual machines are there to be read", steps: []step{
			get("dcim/sites/1/", `{"name":"Lab","slug":"lab","status":{"value":"active"},"virtualmachine_count":1}`),
			get("virtualization/virtual-machines/1/", `{"name":"web-1","site":{"slug":"lab"},"vcpus":2,"primary_ip":null,"tags":[{"slug":"managed"}]}`),
			get("virtualization/virtual-machines/", `{"count":1}`),
			{do: "GET /api/dcim/sites/9/", status: 404, want: `{"detail":"No Site matches the given query."}`},
			{do: "GET /api/virtualization/virtual-machines/9/", status: 404, want: `{"detail":"No VirtualMachine matches the given query."}`},
			{do: "GET /api/ipam/ip-addresses/x/", status: 404, want: `{"detail":"No IPAddress matches the given query."}`},
		}},
	}
}

func changeRows() []row {
	return []row{
		{name: "every write leaves a record, also one that changes nothing", steps: []step{
			{do: "PATCH /api/extras/tags/1/", send: `{"name":"managed","changelog_message":"chg_1"}`, status: 200, want: `{"name":"managed"}`},
			{do: "DELETE /api/extras/tags/1/", send: `{"changelog_message":"chg_2"}`, status: 204},
			{do: "GET /api/core/object-changes/", status: 200, want: `{"count":2,"results":[
				{"id":1,"action":{"value":"update","label":"Updated"},"user_name":"writer","user":{"username":"writer"},"changed_object_type":"extras.tag","changed_object_id":1,"changed_object":null,"object_repr":"managed","message":"chg_1","prechange_data":{"name":"managed"},"postchange_data":{"name":"managed"}},
				{"id":2,"action":{"value":"delete","label":"Deleted"},"message":"chg_2","prechange_data":{"slug":"managed"},"postchange_data":null}]}`},
			{do: "GET /api/core/object-changes/1/", status: 200, want: `{"id":1}`, heads: map[string]string{"ETag": ""}},
			{do: "GET /api/core/object-changes/?action=delete", status: 200, want: `{"count":1}`},
			{do: "GET /api/core/object-changes/?request_id=00000000-0000-4000-8000-000000000000", status: 200, want: `{"count":0}`},
			{do: "POST /api/core/object-changes/", send: `{}`, status: 405, want: `{"detail":"Method \"POST\" not allowed."}`},
			{do: "DELETE /api/core/object-changes/1/", status: 405, want: `{"detail":"Method \"DELETE\" not allowed."}`},
		}, changes: 2},
		{name: "the record keeps references by id and tags by name", steps: []step{
			{do: "PATCH /api/ipam/ip-addresses/1/", send: `{"status":"reserved"}`, status: 200, want: `{"status":{"value":"reserved"}}`},
			{do: "GET /api/core/object-changes/1/", status: 200, want: `{"prechange_data":{"status":"active","tags":["managed"],"vrf":null},"postchange_data":{"status":"reserved"},"changed_object":{"address":"192.0.2.1/24"}}`},
		}, changes: 1},
	}
}

// TestRequestID finds the records of one request by the header of its answer, and no others.
func TestRequestID(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(fake.New(fake.Config{Demo: true, Tokens: tokens()}))
	t.Cleanup(h.Close)
	ask(t, h.URL, step{do: "PATCH /api/extras/tags/1/", send: `{"color":"111111"}`})
	_, head, _ := ask(t, h.URL, step{do: "POST /api/extras/tags/", send: `[{"name":"a","slug":"a"},{"name":"b","slug":"b"}]`})
	id := head.Get("X-Request-ID")
	_, _, log := ask(t, h.URL, step{do: "GET /api/core/object-changes/?request_id=" + id})
	want := `{"count":2,"results":[{"action":{"value":"create"},"object_repr":"a","request_id":"` + id + `"},{"object_repr":"b"}]}`
	if problem := connectortest.Lacks(log, want); problem != "" {
		t.Errorf("%s\n%s", problem, log)
	}
}

// TestETag walks the one way an ETag can be used: as it came, until the next write. It is not last_updated.
func TestETag(t *testing.T) {
	t.Parallel()
	frozen := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := httptest.NewServer(fake.New(fake.Config{Demo: true, Tokens: tokens(), Now: func() time.Time { return frozen }}))
	t.Cleanup(h.Close)
	_, head, body := ask(t, h.URL, step{do: "GET /api/extras/tags/1/"})
	etag := head.Get("ETag")
	if etag != `W/"2026-01-02T03:04:05+00:00"` {
		t.Errorf("ETag is %s", etag)
	}
	var seen struct {
		Updated string `json:"last_updated"`
	}
	if err := json.Unmarshal(body, &seen); err != nil || seen.Updated != "2026-01-02T03:04:05.000000Z" {
		t.Errorf("last_updated is %q", seen.Updated)
	}
	change := step{do: "PATCH /api/extras/tags/1/", send: `{"color":"111111"}`, header: `If-Match: "other", ` + etag}
	status, head, _ := ask(t, h.URL, change)
	if next := head.Get("ETag"); status != 200 || next == etag || next != `W/"2026-01-02T03:04:05.000005+00:00"` {
		t.Errorf("first write: %d, ETag %s", status, next)
	}
	if status, _, _ := ask(t, h.URL, change); status != 412 {
		t.Errorf("second write with the old ETag: %d, want 412", status)
	}
}

// TestAvailableIPs_race lets many take an address at once: nobody gets another's.
func TestAvailableIPs_race(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(fake.New(fake.Config{Demo: true, Tokens: tokens()}))
	t.Cleanup(h.Close)
	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[string]bool{}
	for range 20 {
		all.Go(func() {
			_, _, body := ask(t, h.URL, step{do: "POST /api/ipam/prefixes/1/available-ips/", send: `{}`})
			var ip struct{ Address string }
			if err := json.Unmarshal(body, &ip); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[ip.Address] = true
		})
	}
	all.Wait()
	if len(got) != 20 {
		t.Errorf("20 requests got %d addresses", len(got))
	}
}
