package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"writ/client"
	"writ/e2e/fakes"
)

// opencodePatience is how long OpenCode may take for one conversation.
const opencodePatience = 6 * time.Minute

// TestOpenCode: the real client, configured by writ connect and locked down, asks
// for what its model wants; a person decides in another terminal; the model reads
// what came of it. The model is a script, and no other address can be reached.
func TestOpenCode(t *testing.T) {
	t.Parallel()
	clients(t)
	for _, c := range []struct {
		name, state, wait string
		decide            []string // what the person types before the id
		told              string   // what the model reads at last
	}{
		{"approved", "done", "1h", []string{"approve", "--yes", "--no-wait"}, "It is done and was verified"},
		{"rejected", "rejected", "1h", []string{"reject", "--reason", "not on a Friday"}, `A human said no; nothing was done. ada wrote: "not on a Friday"`},
		{"expired", "expired", "3s", nil, "you may ask again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := startAll(t, func(dir string) {
				if err := os.WriteFile(filepath.Join(dir, "gate", "policy.yaml"), []byte("policy: test\nrules:\n"+
					"  - {id: changes, when: \"true\", effect: approve, wait: "+c.wait+", valid: 1h}\n"+
					"examples:\n  - {name: any, change: {class: config_mutation, environment: lab}, expect: approve}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), opencodePatience)
			defer cancel()
			model := fakes.StartModel(modelOf(c.name))
			t.Cleanup(model.Close)
			talk := opencode(ctx, t, r, model.URL)
			var out, log bytes.Buffer
			talk.Stdout, talk.Stderr = &out, &log
			if err := talk.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- talk.Wait() }()
			id := asked(ctx, t, r, ended, &log)
			if c.decide != nil {
				person := exec.CommandContext(ctx, filepath.Join(r.bin, "writ"), append(c.decide, id)...)
				person.Env = r.env
				if text, err := person.CombinedOutput(); err != nil {
					t.Fatalf("writ %v: %v\n%s", c.decide, err, text)
				}
			}
			if err := <-ended; err != nil {
				t.Fatalf("opencode: %v\n%s", err, log.String())
			}
			if said := saidLast(t, out.Bytes()); !strings.Contains(said, c.told) {
				t.Errorf("the model reads %q\n%s", said, out.String())
			}
			if got, err := r.agent.Change(ctx, id); err != nil || got.State != c.state {
				t.Errorf("it is %s, %v", got.State, err)
			}
			if all, err := r.agent.Changes(ctx, client.ChangeFilter{}); err != nil || len(all.Changes) != 1 {
				t.Errorf("there are %d changes, %v", len(all.Changes), err)
			}
		})
	}
}

// modelOf is a model that proposes one change, waits until it has ended, and says
// what it read.
func modelOf(value string) func([]string) fakes.Reply {
	named := regexp.MustCompile(`^(chg_\w+) is (\w+)\.`)
	return func(results []string) fakes.Reply {
		if len(results) == 0 {
			return fakes.Reply{Tool: "writ_propose_change", Arguments: map[string]any{
				"steps": []any{map[string]any{"action_type": "mock.noop_change", "params": map[string]any{"value": value}}}, "purpose": "my user asked",
			}}
		}
		last := results[len(results)-1]
		m := named.FindStringSubmatch(last)
		if m != nil && strings.Contains("proposed planned awaiting_approval approved claimed executing verifying", m[2]) {
			return fakes.Reply{Tool: "writ_wait_change", Arguments: map[string]any{"id": m[1], "timeout_ms": 5000}}
		}
		return fakes.Reply{Text: "I read: " + last}
	}
}

// opencode is OpenCode without a terminal, in a directory of its own.
func opencode(ctx context.Context, t *testing.T, r running, model string) *exec.Cmd {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	config, err := json.Marshal(map[string]any{
		"autoupdate": false, "share": "disabled", "model": "fake/scripted", "small_model": "fake/scripted", "enabled_providers": []string{"fake"},
		"provider": map[string]any{"fake": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": model, "apiKey": "none"},
			"models": map[string]any{"scripted": map[string]any{"tool_call": true, "limit": map[string]any{"context": 100_000, "output": 4_000}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "opencode.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	connect := exec.CommandContext(ctx, filepath.Join(r.bin, "writ"), "connect", "opencode", "--lockdown", "--write")
	connect.Dir, connect.Env = dir, r.env
	if out, err := connect.CombinedOutput(); err != nil {
		t.Fatalf("writ connect: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(clients(t), "opencode-linux-x64-baseline", "bin", "opencode"),
		"run", "--format", "json", "--print-logs", "set the value")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	const nowhere = "http://127.0.0.1:9"
	cmd.Env = []string{
		"HOME=" + home, "PATH=" + r.bin + ":" + os.Getenv("PATH"), "HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "NO_PROXY=127.0.0.1",
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
	}
	return cmd
}

// asked waits until the agent's one change waits for a person.
func asked(ctx context.Context, t *testing.T, r running, ended chan error, log *bytes.Buffer) string {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := r.agent.Changes(ctx, client.ChangeFilter{})
		if err != nil {
			t.Fatal(err)
		}
		if all := list.Changes; len(all) == 1 && all[0].State != "proposed" && all[0].State != "planned" {
			return all[0].ID
		}
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("opencode asked for nothing: %v\n%s", err, log.String())
		}
	}
}

// saidLast is the last text of a conversation.
func saidLast(t *testing.T, events []byte) (said string) {
	t.Helper()
	for line := range bytes.Lines(events) {
		var e struct {
			Type string
			Part struct{ Text string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if e.Type == "text" {
			said = e.Part.Text
		}
	}
	return said
}
