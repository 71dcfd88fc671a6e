package rest_test

import (
	"net/http"
	"testing"

	"writ"
)

// FuzzBody: whatever is sent, the gate answers with a success or a problem of
// the caller's, and takes in nothing that two readers could understand in two ways.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		proposal, `{}`, `null`, `[]`, `{"steps":[{"action_type":"mock.noop_change","params":{"value":"x","name":"a"}}],"on_failure":"rollback"}`,
		`{"steps":[{"action_type":"mock.noop_change","params":{"value":"x"}}],"Steps":[]}`, `{"steps":null}`, `{"steps":[null]}`,
		`{"steps":[{"action_type":"mock.noop_change","needs":null,"params":null}]}`, "{\"steps\":[\xff]}",
	} {
		f.Add(body)
	}
	g := newGate(f)
	f.Fuzz(func(t *testing.T, body string) {
		g := *g
		g.t = t
		r := g.request("agent", "POST", "/v1/changes", body)
		r.Header.Set("Content-Type", "application/json")
		resp := g.serve(r)
		switch _, err := writ.Parse([]byte(body)); {
		case resp.StatusCode/100 == 5:
			t.Errorf("%d for %q", resp.StatusCode, body)
		case resp.StatusCode == http.StatusOK && err != nil:
			t.Errorf("%q was taken in: %v", body, err)
		}
	})
}
