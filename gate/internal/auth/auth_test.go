package auth_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/gate/internal/auth"
	"writ/gate/internal/model"
	"writ/sys"
)

func add(t *testing.T, path, name string, kind writ.PrincipalKind, roles ...model.Role) string {
	t.Helper()
	made, err := auth.Add(sys.Real(slog.New(slog.DiscardHandler)), path, auth.Principal{Name: name, Kind: kind, Roles: roles}, auth.New{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Token
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "principals.yaml")
	agent := add(t, path, "opencode", writ.Agent, model.Requester)
	if !regexp.MustCompile(`^writ_agent_[0-9a-f]{64}$`).MatchString(agent) {
		t.Errorf("the token %q has an unexpected form", agent)
	}
	p, err := auth.Open(sys.Real(nil), path)
	if err != nil {
		t.Fatal(err)
	}
	who, err := p.Authenticate(agent)
	if err != nil || who.User() != "agent:opencode" || !who.Has(model.Requester) || who.SeesAll() {
		t.Errorf("Authenticate = %+v, %v", who, err)
	}
	for _, wrong := range []string{"", "x", agent[:len(agent)-1], agent + "0", strings.ToUpper(agent), strings.Replace(agent, "agent", "human", 1)} {
		if _, err := p.Authenticate(wrong); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("Authenticate(%q) = %v", wrong, err)
		}
	}

	// Somebody who is added later is let in without a restart.
	human := add(t, path, "ana", writ.Human, model.Approver, model.Auditor)
	if who, err := p.Authenticate(human); err != nil || who.Name != "ana" {
		t.Errorf("after adding: %+v, %v", who, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), human) || strings.Contains(string(data), human[len(human)-64:]) {
		t.Error("the file holds a token")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	// While the file is broken, nobody is let in.
	if err := os.WriteFile(path, []byte("- {name: ana"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Authenticate(human); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("with a broken file: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Authenticate(human); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("without the file: %v", err)
	}
}

func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	sum, other := strings.Repeat("0", 64), strings.Repeat("1", 64)
	entry := func(name, kind, roles, sum string) string {
		return "- {name: " + name + ", kind: " + kind + ", roles: [" + roles + "], token_sha256: '" + sum + "'}\n"
	}
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"agent that approves":    {entry("a", "agent", "requester, approver", sum), []string{"only a human may be approver"}},
		"agent that administers": {entry("a", "agent", "admin", sum), []string{"only a human may be admin"}},
		"unknown kind":           {entry("a", "robot", "requester", sum), []string{"kind is agent or human"}},
		"robot that approves":    {entry("a", "robot", "approver", sum), []string{"only a human may be approver"}},
		"unknown role":           {entry("a", "human", "root", sum), []string{`"root" is no role`}},
		"no role":                {entry("a", "human", "", sum), []string{"there is no role"}},
		"taken name":             {entry("a", "human", "approver", sum) + entry("a", "human", "approver", other), []string{"the name is taken"}},
		"name in capitals":       {entry("Ana", "human", "approver", sum), []string{"a name is a lower-case letter"}},
		"name of another script": {entry("аna", "human", "approver", sum), []string{"a name is a lower-case letter"}},
		"name of the gate":       {entry("writ", "human", "approver", sum), []string{"the name is taken"}},
		"taken token":            {entry("a", "human", "approver", sum) + entry("b", "agent", "requester", sum), []string{"somebody else's"}},
		"token in plain":         {entry("a", "human", "approver", "writ_human_x"), []string{"64 hexadecimal digits"}},
		"unknown key":            {"- {name: a, kind: human, roles: [approver], token: x}", []string{"token"}},
		"no token":               {"- {name: a, kind: human, roles: [approver]}", []string{"there is no token"}},
		"token twice":            {"- {name: a, kind: human, roles: [approver], tokens: [{sha256: '" + sum + "'}, {sha256: '" + sum + "'}]}", []string{"stands twice"}},
		"label with a line":      {"- {name: a, kind: human, roles: [approver], tokens: [{sha256: '" + sum + "', label: \"a\\nb\"}]}", []string{"a label has"}},
		"end that is no time":    {"- {name: a, kind: human, roles: [approver], tokens: [{sha256: '" + sum + "', expires_at: soon}]}", []string{"parsing time"}},
		"second document":        {entry("a", "human", "approver", sum) + "---\n[]\n", []string{"document"}},
		"all at once":            {entry("A", "agent", "admin", "x") + entry("b", "robot", "root", sum), []string{"[0] A: a name", "[0] A: sha256", "[0] A: only", "[1] b: kind", `[1] b: "root"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "principals.yaml")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := auth.Open(sys.Real(nil), path)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v lacks %q", err, want)
				}
			}
		})
	}
}

func TestAdd_refuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "principals.yaml")
	add(t, path, "ana", writ.Human, model.Approver)
	for _, p := range []auth.Principal{
		{Name: "ana", Kind: writ.Human, Roles: []model.Role{model.Auditor}},
		{Name: "bot", Kind: writ.Agent, Roles: []model.Role{model.Approver}},
		{Name: "../x", Kind: writ.Human, Roles: []model.Role{model.Approver}},
	} {
		if _, err := auth.Add(sys.Real(nil), path, p, auth.New{}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("Add(%+v) = %v", p, err)
		}
	}
}
