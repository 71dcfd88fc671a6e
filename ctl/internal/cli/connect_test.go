package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ/api"
	"writ/fault"
)

// connect runs writ connect for a user whose home is a directory of the test.
func (g *gate) connect(user string, args ...string) result {
	return run(g.t, []string{"WRIT_DIR=" + g.home, "HOME=" + user}, "", append([]string{"connect", "--user"}, args...)...)
}

func TestConnect_writes(t *testing.T) {
	t.Parallel()
	g, user := newGate(t), t.TempDir()
	const mine = "{\n  // mine\n  \"theme\": \"dark\"\n}\n"
	path := write(t, user, ".config/opencode/opencode.json", mine)
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}

	if r := g.connect(user, "opencode"); r.status != 0 || !strings.Contains(r.stdout, `"mcp"`) || !strings.Contains(r.stdout, "--lockdown") {
		t.Errorf("printed: %+v", r)
	}
	if read(path) != mine {
		t.Error("printing changed the file")
	}
	if calls := g.of(api.ActionList); len(calls) != 1 || calls[0].token != agentToken {
		t.Errorf("the token was not tried: %v", calls)
	}

	if r := g.connect(user, "opencode", "--lockdown", "--write"); r.status != 0 {
		t.Errorf("written: %+v", r)
	}
	text := read(path)
	for _, part := range []string{"// mine", `"theme": "dark"`, `"*": "deny"`, filepath.Join(g.home, "tokens/agent.token"), filepath.Join(g.home, "run/gate.sock")} {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %s in\n%s", part, text)
		}
	}
	if strings.Contains(text, agentToken) {
		t.Error("the token itself is in the file")
	}
	if read(path+".before-writ") != mine {
		t.Error("what was there is not kept")
	}

	// A second time, nothing is to be done, and what was kept stays.
	if r := g.connect(user, "opencode", "--lockdown", "--write"); r.status != 0 || read(path) != text || read(path+".before-writ") != mine {
		t.Errorf("written again: %+v\n%s", r, read(path))
	}
}

// TestConnect_refuses: whatever is wrong, no file is touched.
func TestConnect_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		file string // what the file of OpenCode has in it
		tell any
		code fault.Code
		says string
	}{
		{"an approver's token", []string{"opencode", "--write", "--as", "ana"}, "", nil, fault.Refused, "no agent's"},
		{"a client nobody knows", []string{"emacs", "--write"}, "", nil, fault.NotFound, "claude-code"},
		{"a file that does not parse", []string{"opencode", "--write"}, "{", nil, fault.Invalid, "opencode.json"},
		{"a client without a file", []string{"json", "--write"}, "", nil, fault.Refused, "Leave --write out"},
		{"a client that cannot be locked down", []string{"json", "--lockdown"}, "", nil, fault.Refused, "cannot be locked down"},
		{"a token that the gate does not take", []string{"opencode", "--write"}, "", fault.New(fault.Unauthenticated, "Not one of this gate."), fault.Unauthenticated, "Not one of this gate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, user := newGate(t), t.TempDir()
			if c.tell != nil {
				g.tell(api.ActionList, c.tell)
			}
			if c.file != "" {
				write(t, user, ".config/opencode/opencode.json", c.file)
			}
			before := files(t, user)
			r := g.connect(user, c.args...)
			if r.status != c.code.Row().Exit || !strings.Contains(r.stderr, c.says) {
				t.Errorf("%+v", r)
			}
			if after := files(t, user); after != before {
				t.Errorf("files: %s, then %s", before, after)
			}
		})
	}
}

// files lists what is below a directory, and what is in it.
func files(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var data []byte
			data, err = os.ReadFile(path)
			list.WriteString(path + ": " + string(data) + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}
