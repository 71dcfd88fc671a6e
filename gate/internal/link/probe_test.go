package link_test

import (
	"crypto/ed25519"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/fault"
	"writ/gate/internal/link"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	ours, keys := newKey(t)
	theirs, _ := newKey(t)
	sealed := []byte(`{"a":"writ"}`)
	good := writ.Finding{Format: writ.FormatFinding, Executor: "ex1", Run: "run_1", Step: "s1", WritDigest: writ.DigestBytes(sealed), Verdict: writ.Happened}
	seal := func(kind writ.Kind, key ed25519.PrivateKey, edit func(*writ.Finding)) []byte {
		f := good
		edit(&f)
		b, err := writ.Seal(kind, f, key)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	same := func(*writ.Finding) {}
	for _, c := range []struct {
		name   string
		sealed []byte
		reason string
	}{
		{"as it is", seal(writ.KindFinding, ours, same), ""},
		{"by another key", seal(writ.KindFinding, theirs, same), "unknown_key"},
		{"sealed as an observation", seal(writ.KindObservation, ours, same), "bad_signature"},
		{"no seal", []byte(`{}`), "malformed"},
		{"of another writ", seal(writ.KindFinding, ours, func(f *writ.Finding) { f.WritDigest = writ.DigestBytes(nil) }), "other_writ"},
		{"of another format", seal(writ.KindFinding, ours, func(f *writ.Finding) { f.Format = "finding/2" }), "other_writ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				answer(w, http.StatusOK, writ.Findings{Findings: [][]byte{c.sealed}})
			})
			got, err := link.New(path, keys).Probe(t.Context(), sealed)
			if c.reason != "" {
				wantFault(t, err, fault.Refused, c.reason)
				if got != nil {
					t.Errorf("with an error there are findings: %v", got)
				}
				return
			}
			if err != nil || len(got) != 1 {
				t.Fatalf("%d findings, %v", len(got), err)
			}
			if diff := cmp.Diff(good, got[0].Finding); diff != "" || string(got[0].Sealed) != string(c.sealed) {
				t.Errorf("the findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAdmittedAndRaise(t *testing.T) {
	t.Parallel()
	_, keys := newKey(t)
	asked := make(chan string, 2)
	path := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path + "?" + r.URL.RawQuery
		if r.Method == http.MethodPost {
			answer(w, http.StatusForbidden, writ.Refusal{Code: fault.Refused, Reason: "stale_epoch", Text: "No."})
			return
		}
		answer(w, http.StatusOK, writ.Admissions{Admitted: []writ.Admitted{{Run: "run_2", Sealed: []byte("x")}}})
	})
	x := link.New(path, keys)
	page, err := x.Admitted(t.Context(), "run_1&after=run_0")
	if err != nil || len(page) != 1 || page[0].Run != "run_2" {
		t.Errorf("%+v %v", page, err)
	}
	if got := <-asked; got != "GET /v1/runs?after=run_1%26after%3Drun_0" {
		t.Error(got)
	}
	wantFault(t, x.Raise(t.Context(), []byte("{}")), fault.Refused, "stale_epoch")
}
