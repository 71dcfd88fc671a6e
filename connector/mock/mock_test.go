package mock_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/connector/connectortest"
	"writ/connector/mock"
)

func put(name string, value any) catalog.Call {
	return catalog.Call{Verb: "put", Path: "/" + name, JSON: value}
}

func get(name string) catalog.Call { return catalog.Call{Verb: "get", Path: "/" + name} }

func TestDriver(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Suite{
		Driver: mock.New(),
		World: func(t *testing.T) connectortest.World {
			var target connector.Target
			return connectortest.World{
				Opened: func(opened connector.Target) {
					target = opened
					if _, err := target.Do(t.Context(), put("first", int64(1))); err != nil {
						t.Error(err)
					}
				},
				Written: func() bool {
					_, err := target.Do(t.Context(), get("second"))
					return err == nil
				},
			}
		},
		Read:   get("first"),
		Write:  put("second", map[string]any{"a": []any{int64(1)}}),
		Absent: get("none"),
	})
}

func open(t *testing.T) connector.Target {
	t.Helper()
	target, err := mock.New().Open(connector.System{Name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestDo_keepsItsOwnCopy(t *testing.T) {
	t.Parallel()
	target, another := open(t), open(t)
	value := map[string]any{"list": []any{"a"}}
	if _, err := target.Do(t.Context(), put("x", value)); err != nil {
		t.Fatal(err)
	}
	value["list"].([]any)[0] = "changed"
	for range 2 { // what a reader changes does not come back either
		seen, err := target.Do(t.Context(), get("x"))
		if d := cmp.Diff(map[string]any{"list": []any{"a"}}, seen.Data); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
		seen.Data.(map[string]any)["list"].([]any)[0] = "changed"
	}
	if _, err := another.Do(t.Context(), get("x")); err == nil {
		t.Error("another target has the value too")
	}
}

func TestDo_refusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	text := "x"
	target := open(t)
	for name, c := range map[string]catalog.Call{
		"no name":          put("", 1),
		"a longer path":    put("a/b", 1),
		"an endpoint":      {Verb: "get", Path: "/x", At: "site"},
		"a host":           {Verb: "get", Path: "/x", Host: "site"},
		"a query":          {Verb: "get", Path: "/x", Query: map[string]string{"a": "b"}},
		"a form":           {Verb: "put", Path: "/x", Form: map[string]string{"a": "b"}},
		"a text":           {Verb: "put", Path: "/x", Text: &text},
		"a condition":      {Verb: "put", Path: "/x", JSON: 1, IfMatch: "x"},
		"nothing to put":   {Verb: "put", Path: "/x"},
		"a get with value": {Verb: "get", Path: "/x", JSON: 1},
	} {
		_, err := target.Do(t.Context(), c)
		if failed, ok := errors.AsType[*connector.Error](err); !ok || failed.Outcome != writ.NotExecuted {
			t.Errorf("%s: %v, want not executed", name, err)
		}
	}
	if _, err := mock.New().Open(connector.System{BaseURL: "http://a.example.test"}); err == nil {
		t.Error("an address was taken")
	}
}
