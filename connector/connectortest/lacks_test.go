package connectortest_test

import (
	"testing"

	"writ/connector/connectortest"
)

// TestLacks holds the oracle of the fakes' tests to account.
func TestLacks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		have, need string
		ok         bool
	}{
		{`{"a":1,"b":2}`, `{"a":1}`, true}, {`{"a":1}`, `{"b":1}`, false}, {`{"a":1}`, `{"a":2}`, false},
		{`[1,2]`, `[1]`, false}, {`[{"a":1,"b":2}]`, `[{"b":2}]`, true}, {`{"a":null}`, `{"a":"*"}`, false},
		{`{"a":"x"}`, `{"a":"*"}`, true}, {`null`, `{}`, false}, {``, ``, true}, {`{}`, ``, false},
		{`true`, `true`, true}, {``, `{}`, false},
	} {
		if problem := connectortest.Lacks([]byte(c.have), c.need); (problem == "") != c.ok {
			t.Errorf("Lacks(%s, %s) = %q", c.have, c.need, problem)
		}
	}
}
