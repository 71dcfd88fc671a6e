package http_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"writ/connector/recorder"
)

// The tokens of the fake API.
const (
	fullToken = "fake-token-of-someone-who-may"
	poorToken = "fake-token-of-someone-who-may-not"
)

// fakeAPI is a REST API with things: /api/things/{id} is any JSON value, with an
// entity tag.
type fakeAPI struct {
	mu     sync.Mutex
	things map[string]string
}

func newFakeAPI() (*fakeAPI, *recorder.Recorder) {
	f := &fakeAPI{things: map[string]string{"first": `{"name":"first","size":3}`}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"up":true}`) })
	mux.HandleFunc("/api/things/{id}", f.thing)
	return f, recorder.Wrap(authenticated(mux), nil)
}

func authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		user, password, _ := q.BasicAuth()
		token, _ := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
		for _, t := range []string{token, q.Header.Get("X-Fake-Key"), password} {
			switch {
			case t == fullToken && (t != password || user == "someone"):
				next.ServeHTTP(w, q)
				return
			case t == poorToken:
				http.Error(w, "you may not", http.StatusForbidden)
				return
			}
		}
		http.Error(w, "who are you?", http.StatusUnauthorized)
	})
}

func etag(thing string) string {
	sum := sha256.Sum256([]byte(thing))
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

func (f *fakeAPI) thing(w http.ResponseWriter, q *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := q.PathValue("id")
	thing, found := f.things[id]
	if m := q.Header.Get("If-Match"); m != "" && m != etag(thing) {
		http.Error(w, "it has changed", http.StatusPreconditionFailed)
		return
	}
	switch q.Method {
	case http.MethodPut:
		body, _ := io.ReadAll(q.Body)
		if !json.Valid(body) {
			http.Error(w, "not JSON", http.StatusUnprocessableEntity)
			return
		}
		f.things[id] = string(body)
		w.WriteHeader(http.StatusNoContent)
		return
	case http.MethodDelete:
		delete(f.things, id)
	}
	if !found {
		http.Error(w, `no thing "`+id+`"`, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", etag(thing))
	io.WriteString(w, thing)
}

func (f *fakeAPI) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, found := f.things[id]
	return found
}
