package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"writ/connector/recorder"
)

// dnsToken is what the service of docs/actions.md wants to see.
const dnsToken = "fake-dns-token-3f90-not-real"

// dns is the service that docs/actions.md writes actions for: a REST API that
// writ knows nothing of.
type dns struct {
	mu      sync.Mutex
	records map[string]map[string]any
	changes int
}

func (d *dns) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := r.URL.Path
	w.Header().Set("Content-Type", "application/json")
	switch _, there := d.records[name]; {
	case r.Header.Get("Authorization") != "Bearer "+dnsToken:
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodGet && name == "/":
		fmt.Fprint(w, `{}`)
	case r.Method == http.MethodPut:
		record := map[string]any{}
		if json.NewDecoder(r.Body).Decode(&record) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		d.changes++
		d.records[name] = record
		_ = json.NewEncoder(w).Encode(record)
	case !there:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		d.changes++
		delete(d.records, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, d.changes))
		_ = json.NewEncoder(w).Encode(d.records[name])
	}
}

// docsCommands try what the documentation teaches.
//
//	dns                start the service of docs/actions.md; $DNS_URL and $DNS_TOKEN; its fake is of kind dns
//	actions-of PAGE    put every action of a page, and what it says of settings.yaml, into the catalog
func docsCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"dns": func(s *script, _ []string) {
			s.dns = recorder.Wrap(&dns{records: map[string]map[string]any{}}, nil)
			server := httptest.NewServer(s.dns)
			s.Defer(server.Close)
			s.Setenv("DNS_URL", server.URL)
			s.Setenv("DNS_TOKEN", dnsToken)
		},
		"actions-of": func(s *script, args []string) {
			s.need(args, 1, "actions-of PAGE")
			page, err := os.ReadFile(filepath.Join(s.root, args[0]))
			s.Check(err)
			taken := 0
			for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
				file, flag := filepath.Join(s.dir, "catalog", "settings.yaml"), os.O_APPEND
				if action, ok := strings.CutPrefix(block[1], "action: "); ok {
					name, _, _ := strings.Cut(action, "\n")
					file, flag = filepath.Join(s.dir, "catalog", strings.ReplaceAll(name, ".", "_")+".yaml"), os.O_CREATE|os.O_EXCL
					taken++
				}
				out, err := os.OpenFile(file, flag|os.O_WRONLY, 0o600)
				s.Check(err)
				_, err = out.WriteString("\n" + block[1])
				s.Check(err)
				s.Check(out.Close())
			}
			if taken == 0 {
				s.Fatalf("%s has no action", args[0])
			}
		},
	}
}
