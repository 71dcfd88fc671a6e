package shell_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"writ/shell"
)

// TestDocs_commands holds the page for operators to what it says: its documents
// load, their examples come true, and they do what stands around them.
func TestDocs_commands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, part := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	if len(blocks) != 3 {
		t.Fatalf("the page has %d documents, not a command, a tightened command and a policy", len(blocks))
	}
	k, err := shell.Load(shell.Shipped(), fstest.MapFS{
		"frobctl.yaml": {Data: []byte(blocks[0])}, "tighten.yaml": {Data: []byte(blocks[1])}, "policy.yaml": {Data: []byte(blocks[2])},
	})
	if err != nil {
		t.Fatal(err)
	}
	for cmd, want := range map[string]string{
		"frobctl list": "read_only", "frobctl -c list set": "config_mutation", "git fetch": "config_mutation", "git log -n 3": "read_only", "git diff --stat": "read_only",
		"git push origin x": "config_mutation", "git branch -D x": "destructive", "cat /srv/ledger/book": "config_mutation", "cat x.frobkey": "config_mutation",
	} {
		if v := k.Classify(cmd); string(v.Class) != want {
			t.Errorf("Classify(%q) = %s, want %s: %s", cmd, v.Class, want, strings.Join(v.Reasons, "; "))
		}
	}
	if i, _ := k.Command("frobctl"); len(i.Examples) != 12 || i.File != "frobctl.yaml" || i.Source != blocks[0] {
		t.Errorf("what is known of frobctl is %+v", i)
	}
}
