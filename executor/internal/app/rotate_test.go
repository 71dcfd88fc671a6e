package app_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ"
	"writ/fault"
	"writ/ledger"
)

// rotated changes the key and returns the public one that was printed.
func rotated(t *testing.T, dir string) ed25519.PublicKey {
	t.Helper()
	var who struct {
		Executor  string `json:"executor"`
		PublicKey string `json:"public_key"`
		KeyID     string `json:"key_id"`
	}
	if err := json.Unmarshal([]byte(ok(t, dir, "", "rotate-key")), &who); err != nil {
		t.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(who.PublicKey)
	if err != nil || who.Executor != "site-a" || who.KeyID != writ.KeyID(key) {
		t.Errorf("rotate-key printed %+v", who)
	}
	return key
}

// A new key goes on where the old one was: whoever knows the first can verify the
// audit to its end, and the executor shows what each key signed of the next.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	dir, first := initialised(t)
	stop := running(t, dir)
	if _, stderr, status := command(t, dir, "", "rotate-key"); status != fault.Conflict.Row().Exit || !strings.Contains(stderr, "Stop it first") {
		t.Errorf("while it runs: %d %s", status, stderr)
	}
	stop()
	before, err := ledger.Verify(filepath.Join(dir, "audit"), ledger.Against{})
	if err != nil {
		t.Fatal(err)
	}
	second := rotated(t, dir)
	third := rotated(t, dir)
	stop = running(t, dir)
	var h writ.Hello
	if err := call(t, dir, http.MethodGet, writ.PathHello, nil, &h); err != nil {
		t.Fatal(err)
	}
	stop()
	keys := ledger.Signers{{Key: first}}
	for _, f := range h.Former {
		if keys, err = keys.Follow(f.Seam); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) != 3 || !keys[1].Key.Equal(second) || !keys[2].Key.Equal(third) || h.KeyID != writ.KeyID(third) || h.Former[1].KeyID != writ.KeyID(second) {
		t.Errorf("%v %+v", keys, h)
	}
	after, err := ledger.Verify(filepath.Join(dir, "audit"), ledger.Against{Key: before.Key})
	if err != nil || after.Key == before.Key || after.Events <= before.Events || after.Segments != 3 {
		t.Errorf("%+v %v", after, err)
	}
}

// Whatever is durable when the change of the key is cut off, the same command
// ends it with the same key; until then the executor starts with the old one, or
// says which command ends it.
func TestRotateKey_cutOff(t *testing.T) {
	t.Parallel()
	before, _ := initialised(t)
	running(t, before)()
	first, err := ledger.Verify(filepath.Join(before, "audit"), ledger.Against{})
	if err != nil {
		t.Fatal(err)
	}
	top := filepath.Dir(before)
	after := filepath.Join(top, "after")
	copied(t, after, before, ".")
	want := rotated(t, after)
	nextKey := func(t *testing.T, dir string) {
		copied(t, filepath.Join(dir, "executor.key.next"), filepath.Join(after, "executor.key"), "")
	}
	steps := []struct {
		name string
		done func(t *testing.T, dir string)
		runs bool
	}{
		{"half of the new key's file", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "executor.key.next.new"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"the new key's file", nextKey, true},
		{"the event", func(t *testing.T, dir string) { copied(t, dir, after, "journal.db") }, true},
		{"its line", func(t *testing.T, dir string) { copied(t, dir, after, "audit/segment/000000000000.jsonl") }, true},
		{"half of the seam", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "audit/segment.next.new"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"the seam", func(t *testing.T, dir string) { copied(t, dir, after, "audit/segment/000000000001.jsonl") }, false},
		{"the tiles", func(t *testing.T, dir string) { copied(t, dir, after, "audit/tile") }, false},
		{"the checkpoint", func(t *testing.T, dir string) { copied(t, dir, after, "audit/checkpoint") }, false},
	}
	for n := range steps {
		t.Run(steps[n].name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(top, string(rune('a'+n)))
			copied(t, dir, before, ".")
			for _, s := range steps[:n+1] {
				s.done(t, dir)
			}
			if n > 0 {
				doctor, _, _ := command(t, dir, "", "doctor")
				if !strings.Contains(doctor, "writ-executor rotate-key --dir "+dir) {
					t.Errorf("doctor does not say what ends it: %s", doctor)
				}
			}
			if steps[n].runs {
				running(t, dir)()
			} else if _, stderr, status := command(t, dir, "", "run"); status == 0 || !strings.Contains(stderr, "writ-executor rotate-key") {
				t.Errorf("run ended with %d: %s", status, stderr)
			}
			if got := rotated(t, dir); n > 0 && !got.Equal(want) {
				t.Error("another key was made")
			}
			if _, err := os.Lstat(filepath.Join(dir, "executor.key.next")); err == nil {
				t.Error("the file of the new key is left over")
			}
			running(t, dir)()
			if r, err := ledger.Verify(filepath.Join(dir, "audit"), ledger.Against{Key: first.Key}); err != nil || r.Segments != 2 {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

// copied puts a file or a directory of one directory into another.
func copied(t *testing.T, to, from, name string) {
	t.Helper()
	to, from = filepath.Join(to, name), filepath.Join(from, name)
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if !info.IsDir() {
		text, err := os.ReadFile(from)
		if err = errors.Join(err, os.WriteFile(to, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		} else if err == nil {
			err = os.Chmod(path, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
