package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ/fault"
)

const gateTokens = `echo "gate $3 $4 $5 $6" >> "$here/calls"
case "$3" in
add-token) echo '{"name":"'"$4"'","token":"writ_human_another-not-real-token","token_id":"tok_00000000000b"}';;
revoke-token) echo '{"name":"ana","token_id":"'"$4"'"}';;
remove-principal) echo '{"name":"'"$4"'","roles":["approver"]}';;
list-principals) echo '[{"name":"ana","kind":"human","roles":["approver"],"tokens":[
{"id":"tok_00000000000a","label":"phone","state":"active","created_at":"2026-05-04T03:02:01.000Z","expires_at":"2027-05-04T03:02:01.000Z","revoked_at":"","last_used_at":""},
{"id":"tok_00000000000b","label":"","state":"revoked","created_at":"","expires_at":"","revoked_at":"2026-05-04T03:02:01.000Z","last_used_at":"2026-05-04T03:02:01.000Z"}]}]';;
esac`

func TestTokens_managed(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	env, dir := stand(t, gateTokens, `echo "executor $3 $4" >> "$here/calls"`)
	env = append(env, "WRIT_DIR="+g.home)
	said := func(want string, args ...string) {
		t.Helper()
		r := run(t, env, "", args...)
		if r.status != 0 || !strings.Contains(r.stdout, want) || strings.Contains(r.stdout, "not-a-real-token") || strings.Contains(r.stdout, "not-real-token") {
			t.Errorf("%v: %d, without %q: %s%s", args, r.status, want, r.stdout, r.stderr)
		}
	}
	said("tok_00000000000a  human:ana  active   phone  ", "tokens", "list")
	said("never", "tokens", "list")
	said("ana   human  approver  1", "principals", "list")
	said("ana.tok_00000000000b.token", "tokens", "add", "ana", "--label", "phone", "--expires", "30d")
	said("of ana is taken no more", "tokens", "revoke", "tok_00000000000a")

	holds := func(name, want string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(g.home, "tokens", name))
		if err != nil || string(data) != want {
			t.Errorf("%s holds %q, %v", name, data, err)
		}
	}
	holds("ana.token", approverToken+"\n")
	holds("ana.tok_00000000000b.token", "writ_human_another-not-real-token\n")
	said("tok_d6b6270916ff is revoked", "tokens", "rotate", "ana")
	holds("ana.token", "writ_human_another-not-real-token\n")
	said("ana may not call any more", "principals", "remove", "ana")
	if _, err := os.Stat(filepath.Join(g.home, "tokens", "ana.token")); err == nil {
		t.Error("the token of who was removed is still there")
	}
	if r := run(t, env, "", "tokens", "rotate", "ana"); r.status != fault.NotFound.Row().Exit {
		t.Errorf("a token that is not here: %d %s", r.status, r.stderr)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gate add-token ana --label phone", "gate revoke-token tok_d6b6270916ff", "executor remove-approver ana"} {
		if !strings.Contains(string(calls), want) {
			t.Errorf("%q was not called:\n%s", want, calls)
		}
	}
}
