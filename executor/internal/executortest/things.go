package executortest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Things is an API of named values.
type Things struct {
	mu     sync.Mutex
	Values map[string]string
	Ignore bool                      // takes writes and forgets them
	OnCall func(method, path string) // is called before a request is answered
	tasks  []map[string]string
}

// Value returns the value of a thing.
func (t *Things) Value(name string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.Values[name]
	return v, ok
}

// Set changes a thing behind the executor's back.
func (t *Things) Set(name, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Values[name] = value
}

// ServeHTTP answers like a careless API: its errors repeat the caller's credential.
func (t *Things) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.OnCall != nil {
		t.OnCall(q.Method, q.URL.Path)
	}
	body, _ := io.ReadAll(q.Body)
	var in map[string]string
	_ = json.Unmarshal(body, &in)
	name, isThing := strings.CutPrefix(q.URL.Path, "/things/")
	number, isTask := strings.CutPrefix(q.URL.Path, "/tasks/")
	switch {
	case q.Header.Get("Authorization") != "Bearer "+Token:
		http.Error(w, "who are you?", http.StatusUnauthorized)
	case q.URL.Path == "/free":
		answer(w, map[string]string{"name": "free" + strings.Repeat("e", len(t.Values))})
	case isThing && q.Method == http.MethodGet:
		value, ok := t.Values[name]
		if !ok {
			http.Error(w, "no such thing", http.StatusNotFound)
			return
		}
		answer(w, map[string]string{"value": value})
	case isThing && q.Method == http.MethodPut && in["value"] == "wrong":
		http.Error(w, "wrong value from "+q.Header.Get("Authorization"), http.StatusUnprocessableEntity)
	case isThing && q.Method == http.MethodPut:
		if !t.Ignore {
			t.Values[name] = in["value"]
		}
		answer(w, map[string]string{"value": in["value"], "password": "hunter2-not-real"})
	case isThing && q.Method == http.MethodDelete:
		delete(t.Values, name)
		w.WriteHeader(http.StatusNoContent)
	case q.URL.Path == "/tasks" && q.Method == http.MethodPost:
		t.tasks = append(t.tasks, in)
		if in["end"] == "done" {
			t.Values[in["name"]] = in["value"]
		}
		answer(w, map[string]string{"id": fmt.Sprint(len(t.tasks))})
	case isTask:
		var n int
		_, _ = fmt.Sscan(number, &n)
		if n < 1 || n > len(t.tasks) {
			http.Error(w, "no such task", http.StatusNotFound)
			return
		}
		answer(w, map[string]string{"state": t.tasks[n-1]["end"]})
	default:
		http.Error(w, "no such path", http.StatusNotFound)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
