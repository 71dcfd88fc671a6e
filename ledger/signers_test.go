package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"writ"
	"writ/fault"
	"writ/ledger"
)

// A key signs no checkpoint beyond the events at which another one followed it,
// and none before those at which it began, whatever time a receipt tells.
func TestSigners_OpenReceipt(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	open := func(name string) *ledger.Log {
		t.Helper()
		l, err := ledger.Open(filepath.Join(top, name), ledger.Options{Name: "writ/test", Key: key("first"), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	add := func(l *ledger.Log, n int64) {
		t.Helper()
		line, err := ledger.Line(writ.Object{"sequence": n})
		if err == nil {
			err = l.Append(line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fork := func(l *ledger.Log, name string) *ledger.Log {
		t.Helper()
		if _, err := l.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		copyPrivate(t, filepath.Join(top, name), l.Dir())
		return open(name)
	}
	real := open("real")
	early := fork(real, "early")
	add(real, 1)
	late := fork(real, "late")
	if err := real.Rotate(key("second")); err != nil {
		t.Fatal(err)
	}
	add(late, 2)
	if err := early.Rotate(key("second")); err != nil {
		t.Fatal(err)
	}
	keys, err := ledger.ReadSigners(real.Dir())
	if err != nil || keys.Check() != nil || len(keys) != 2 {
		t.Fatal(keys, err)
	}
	if len(keys.At(1)) != 1 || len(keys.At(2)) != 2 {
		t.Error("the keys of the events are others")
	}
	was := writ.At(keys[1].Since.Add(-time.Hour))
	for _, c := range []struct {
		by     string
		of     *ledger.Log
		reason string
	}{{"second", real, ""}, {"first", late, ledger.Retired}, {"second", early, "early_key"}} {
		signed, err := c.of.Sign()
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := writ.Seal(writ.KindReceipt, writ.Receipt{FinishedAt: was, Checkpoint: string(signed)}, key(c.by))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keys.OpenReceipt(sealed, was, new(writ.Receipt)); fault.ReasonOf(err) != c.reason {
			t.Errorf("%s, %d events: %v", c.by, c.of.Size(), err)
		}
	}
}

// copyPrivate copies a directory so that nobody else may use the copy.
func copyPrivate(t *testing.T, to, from string) {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
			mode := os.FileMode(0o600)
			if err == nil && d.IsDir() {
				mode = 0o700
			}
			return errors.Join(err, os.Chmod(path, mode))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}
