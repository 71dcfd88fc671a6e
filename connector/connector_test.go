package connector_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"writ/connector"
)

func TestSecret_doesNotPrint(t *testing.T) {
	t.Parallel()
	const value = "fake-secret"
	s := connector.NewSecret(value)
	if s.Reveal() != value || (connector.Secret{}).Reveal() != "" {
		t.Errorf("Reveal: %q, and of the zero secret %q", s.Reveal(), connector.Secret{}.Reveal())
	}
	holder := struct {
		Open   connector.Secret
		hidden connector.Secret
		all    []any
	}{s, s, []any{s, &s}}
	var b strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%p"} {
		fmt.Fprintf(&b, verb+verb+verb+"\n", s, &s, holder)
	}
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "s", s, "h", holder)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "s", s, "h", holder)
	encoded, err := json.Marshal(map[string]any{"s": s, "h": holder})
	if err != nil {
		t.Fatal(err)
	}
	b.Write(encoded)
	if text := b.String(); strings.Contains(text, value) || strings.Contains(text, fmt.Sprintf("%x", value)) {
		t.Errorf("the value is in\n%s", text)
	}
	for _, verb := range []string{"%v", "%s", "%#v"} {
		if got := fmt.Sprintf(verb, s); got != "[secret]" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}
