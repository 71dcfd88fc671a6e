package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"writ/ctl/internal/cli"
)

// A call that is withdrawn is answered, and so is every other, once (C141).
func TestMCP_withdrawn(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	began := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Params struct{ Name string }
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		if m.Params.Name == "wait_change" {
			close(began)
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{}}`))
	})
	socket := filepath.Join(g.home, "run/mcp.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	server.Start()
	defer server.Close()

	in, out := io.Pipe()
	go func() {
		for _, text := range []string{
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait_change","arguments":{"id":"x"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`, // never asked
			`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"get_policy"}}`,
		} {
			if bytes.Contains([]byte(text), []byte(`"requestId":7`)) {
				<-began
			}
			_, _ = out.Write([]byte(text + "\n"))
		}
		_ = out.Close()
	}()
	var stdout, stderr bytes.Buffer
	if status := cli.Run(t.Context(), []string{"mcp", "--gate", socket}, []string{"WRIT_DIR=" + g.home}, in, &stdout, &stderr); status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr.String())
	}
	answers := map[int]string{}
	for line := range bytes.Lines(stdout.Bytes()) {
		var a struct {
			ID     int
			Result struct {
				Meta map[string]any `json:"_meta"`
			}
		}
		if err := json.Unmarshal(line, &a); err != nil {
			t.Fatal(err)
		}
		if _, twice := answers[a.ID]; twice {
			t.Errorf("%d is answered twice", a.ID)
		}
		code, _ := a.Result.Meta["writ/code"].(string)
		answers[a.ID] = code
	}
	if code, answered := answers[8]; len(answers) != 2 || answers[7] != "canceled" || !answered || code != "" {
		t.Errorf("%v\n%s", answers, stdout.String())
	}
}
