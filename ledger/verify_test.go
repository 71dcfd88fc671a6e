package ledger_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ"
	"writ/fault"
	"writ/ledger"
)

func TestVerify_namesTheFirstWrongEvent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		do     func(t *testing.T, dir string)
		reason string
		want   string
	}{
		{"a word changed", func(t *testing.T, dir string) { edit(t, segment(dir, 1), swap("planner", "nobody1")) }, "event_changed", "Event 101 is wrong"},
		{"the last event changed", func(t *testing.T, dir string) { edit(t, segment(dir, 2), swap(`"sequence":250`, `"sequence":251`)) }, "event_changed", "Event 250 is wrong"},
		{"an event after the checkpoint changed", func(t *testing.T, dir string) { edit(t, segment(dir, 2), swap(`"sequence":255`, `"sequence":256`)) }, "bad_form", "Event 255 is wrong: it does not have the sequence 255"},
		{"an event after the checkpoint spoilt", func(t *testing.T, dir string) {
			edit(t, segment(dir, 2), swap(`"sequence":254`, `"sequence": 254`))
		}, "bad_form", "Event 254 is wrong: it is not in canonical form"},
		{"no JSON after the checkpoint", func(t *testing.T, dir string) {
			edit(t, segment(dir, 2), func(s string) string { return s + "x\n" })
		}, "bad_form", "Event 261 is wrong: it is not strict JSON"},
		{"another format after the checkpoint", func(t *testing.T, dir string) {
			edit(t, segment(dir, 2), func(s string) string { return s + `{"sequence":261}` + "\n" })
		}, "bad_form", "Event 261 is wrong: it is not an event of the format"},
		{"a line too long", func(t *testing.T, dir string) {
			edit(t, segment(dir, 2), func(s string) string { return s + strings.Repeat("x", writ.MaxSize+1) + "\n" })
		}, "bad_form", "Event 261 is wrong: it is longer"},
		{"a torn line before another segment", func(t *testing.T, dir string) {
			edit(t, segment(dir, 1), func(s string) string { return s[:len(s)-1] })
		}, "event_missing", "Event 200 is wrong"},
		{"the events of a segment removed", func(t *testing.T, dir string) {
			edit(t, segment(dir, 2), func(s string) string { seam, _, _ := strings.Cut(s, "\n"); return seam + "\n" })
		}, "event_missing", "Event 201 is wrong: it is missing"},
		{"a segment removed", func(t *testing.T, dir string) { remove(t, segment(dir, 1)) }, "segment_missing", "After event 100: "},
		{"a seam changed", func(t *testing.T, dir string) { edit(t, segment(dir, 2), swap("since 2026", "since 2027")) }, "bad_checkpoint", "After event 200: "},
		{"a seam of another segment", func(t *testing.T, dir string) {
			edit(t, segment(dir, 2), func(string) string { return files(t, dir)["segment/000000000001.jsonl"] })
		}, "bad_segment", "After event 200: "},
		{"a tile changed", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "tile/0/000.p/250"), func(s string) string { return "x" + s[1:] })
		}, "bad_tile", "tile/0/000.p/250"},
		{"the checkpoint changed", func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "checkpoint"), swap("250", "240")) }, "bad_checkpoint", "own checkpoint is refused"},
		{"a signature added to the checkpoint", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "checkpoint"), func(s string) string { return s + "— other AAAAAAAA\n" })
		}, "bad_checkpoint", "own checkpoint is refused"},
		{"a signature of the same meaning", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "checkpoint"), func(s string) string {
				at := len(s) - 3 // before the padding and the newline
				return s[:at] + string(s[at]+1) + s[at+1:]
			})
		}, "bad_checkpoint", "own checkpoint is refused"},
		{"a seam for a checkpoint", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "checkpoint"), func(string) string { return "x\n0\nx\n\n" })
		}, "bad_checkpoint", "own checkpoint is refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := options()
			o.Events = 100
			dir := filepath.Join(t.TempDir(), "audit")
			l := open(t, dir, o)
			grow(t, l, 250)
			checkpoint(t, l)
			grow(t, l, 10)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			report, err := ledger.Verify(dir, ledger.Against{})
			if err != nil || report.Events != 260 || report.Signed != 250 {
				t.Fatalf("%s %v", report, err)
			}
			c.do(t, dir)
			_, err = ledger.Verify(dir, ledger.Against{})
			if fault.CodeOf(err) != fault.Invalid || fault.ReasonOf(err) != c.reason || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v (%s), want %s and %q", err, fault.ReasonOf(err), c.reason, c.want)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// A ledger that was set back with its checkpoint is intact for all that it
// shows; the checkpoint that was kept tells.
func TestVerify_setBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, options())
	grow(t, l, 10)
	checkpoint(t, l)
	old := filepath.Join(t.TempDir(), "old")
	if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	grow(t, l, 2)
	kept := checkpoint(t, l)
	report, err := ledger.Verify(old, ledger.Against{})
	want := "10 events in 1 segment, prefix valid: whether later events were removed, only a checkpoint can show that was kept elsewhere"
	if err != nil || report.String() != want {
		t.Errorf("%q %v, want %q", report, err, want)
	}
	_, err = ledger.Verify(old, ledger.Against{Checkpoint: kept})
	if fault.ReasonOf(err) != "event_missing" || !strings.Contains(err.Error(), "Event 11 is wrong: it is missing, and the kept checkpoint covers 12 events") {
		t.Errorf("%v", err)
	}
	// And the one of then is fulfilled by the ledger of now.
	was, err := os.ReadFile(filepath.Join(old, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	report, err = ledger.Verify(dir, ledger.Against{Checkpoint: was})
	if want := "complete and unchanged up to event 10, as the kept checkpoint has them; 2 events after it: prefix valid"; err != nil || !strings.Contains(report.String(), want) {
		t.Errorf("%s %v, want %q", report, err, want)
	}
}

// Two ledgers that go apart after a while cannot both fit one checkpoint, and a
// key that was replaced signs nothing that came later.
func TestVerify_otherHands(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, options())
	grow(t, l, 5)
	checkpoint(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	fork := filepath.Join(t.TempDir(), "fork")
	if err := os.CopyFS(fork, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(fork, 0o700); err != nil {
		t.Fatal(err)
	}
	for name := range files(t, fork) {
		if err := os.Chmod(filepath.Join(fork, name), 0o600); err != nil {
			t.Fatal(err)
		}
		for d := filepath.Dir(filepath.Join(fork, name)); d != fork; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	a, b := open(t, dir, options()), open(t, fork, options())
	grow(t, a, 3)
	line, err := ledger.Line(writ.Object{"sequence": int64(6), "event": "change.proposed", "user": "agent:other"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Append(line, event(t, 7), event(t, 8)); err != nil {
		t.Fatal(err)
	}
	kept := checkpoint(t, a)
	checkpoint(t, b)
	_, err = ledger.Verify(fork, ledger.Against{Checkpoint: kept})
	if fault.ReasonOf(err) != "event_changed" || !strings.Contains(err.Error(), "One of the events 9 to 8") && !strings.Contains(err.Error(), "events") {
		t.Errorf("the fork: %v", err)
	}

	// The key is changed; who finds the old one cannot use it.
	if err := a.Rotate(key("second")); err != nil {
		t.Fatal(err)
	}
	grow(t, a, 1)
	checkpoint(t, a)
	report, err := ledger.Verify(dir, ledger.Against{})
	if err != nil {
		t.Fatal(err)
	}
	stolen := filepath.Join(t.TempDir(), "stolen")
	o := options()
	s := open(t, stolen, o)
	grow(t, s, 9)
	forged := checkpoint(t, s)
	if _, err := ledger.Verify(dir, ledger.Against{Checkpoint: forged}); fault.ReasonOf(err) != "bad_checkpoint" {
		t.Errorf("a checkpoint by the old key: %s %v", report, err)
	}
	if _, err := ledger.Verify(dir, ledger.Against{Key: "other+00000000+AAAA"}); fault.ReasonOf(err) != "other_key" {
		t.Errorf("another first key: %v", err)
	}
}

func TestVerify_nothingThere(t *testing.T) {
	t.Parallel()
	if _, err := ledger.Verify(filepath.Join(t.TempDir(), "none"), ledger.Against{}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	dir, _ := made(t, 0, options())
	if report, err := ledger.Verify(dir, ledger.Against{}); err != nil || report.Events != 0 {
		t.Errorf("%s %v", report, err)
	}
}

// Long lines, and short ones at every border of what a worker takes at a time.
func TestVerify_linesOfAllLengths(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, options())
	for i, n := range []int{1, 500_000, 524_000, 100, 1_048_000, 3, 262_144, 1_000_000, 524_288, 7} {
		line, err := ledger.Line(writ.Object{"sequence": int64(i + 1), "text": strings.Repeat("x", n)})
		if err == nil {
			err = l.Append(line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	kept := checkpoint(t, l)
	for _, workers := range []int{1, 3} {
		var done, total int64
		report, err := ledger.Verify(dir, ledger.Against{Checkpoint: kept, Workers: workers, Progress: func(d, all int64) { done, total = d, all }})
		if err != nil || report.Kept != 10 || done != total || total == 0 {
			t.Errorf("%s %v, %d of %d bytes", report, err, done, total)
		}
	}
}

// A reader is not disturbed by the writer.
func TestVerify_whileItGrows(t *testing.T) {
	t.Parallel()
	dir, o := filepath.Join(t.TempDir(), "audit"), options()
	o.Events = 50
	l := open(t, dir, o)
	grow(t, l, 1)
	checkpoint(t, l)
	stop, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if report, err := ledger.Verify(dir, ledger.Against{}); err != nil {
				failed <- fmt.Errorf("%s: %w", report, err)
				return
			}
		}
	}()
	for range 60 {
		grow(t, l, 13)
		checkpoint(t, l)
	}
	close(stop)
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

func FuzzVerify(f *testing.F) {
	dir, _ := made(f, 3, options())
	good := files(f, dir)
	_, lines, _ := strings.Cut(good["segment/000000000000.jsonl"], "\n")
	f.Add(lines)
	f.Add(lines[:50])
	f.Add("{}\n")
	f.Add("\n\n")
	dir, _ = made(f, 0, options())
	empty := files(f, dir)
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if err := errors.Join(os.Chmod(dir, 0o700), os.Mkdir(filepath.Join(dir, "segment"), 0o700)); err != nil {
			t.Fatal(err)
		}
		for name, content := range empty {
			if strings.HasPrefix(name, "segment") {
				content += text
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		report, err := ledger.Verify(dir, ledger.Against{})
		if report.Events < 0 || report.Events > int64(strings.Count(text, "\n")) {
			t.Fatalf("an impossible report: %+v", report)
		}
		if err == nil && report.Torn != (text != "" && !strings.HasSuffix(text, "\n")) {
			t.Fatalf("%+v of %q", report, text)
		}
		if err != nil {
			return
		}
		// What verifies can be opened, and its events written again give the same ledger.
		l := open(t, dir, options())
		if l.Size() != report.Events || l.Tree().Root() != report.Root {
			t.Fatalf("opened with %d events, verified %d", l.Size(), report.Events)
		}
	})
}

// An event and the hash of it that was recorded are changed alike: the tile of
// tiles still tells among which it is, and of a single one that it is that one.
func TestVerify_hashesChangedAlike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		events, wrong int
		want          string
	}{
		{900, 300, "One of the events 257 to 512 is not"},
		{900, 700, "One of the events 513 to 768 is not"},
		{900, 800, "One of the events 1 to 900 is not"}, // in the tile that is not full: no other holds its hash
		{1, 1, "Event 1 is wrong: it is not the one that was recorded, as the ledger's own checkpoint tells"},
	} {
		dir, _ := made(t, c.events, options())
		var was, now []byte
		edit(t, segment(dir, 0), func(s string) string {
			lines := strings.SplitAfter(s, "\n")
			line := strings.TrimSuffix(lines[c.wrong], "\n")
			was = []byte(line)
			line = strings.Replace(line, "{", `{"a":1,`, 1)
			now = []byte(line)
			lines[c.wrong] = line + "\n"
			return strings.Join(lines, "")
		})
		old, other := ledger.Leaf(was), ledger.Leaf(now)
		for name, text := range files(t, dir) {
			if strings.HasPrefix(name, "tile/0/") {
				edit(t, filepath.Join(dir, name), func(string) string { return strings.ReplaceAll(text, string(old[:]), string(other[:])) })
			}
		}
		if report, err := ledger.Verify(dir, ledger.Against{}); fault.ReasonOf(err) != "event_changed" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("event %d of %d: %s %v", c.wrong, c.events, report, err)
		}
	}
}

// Two checkpoints of as many events and other roots: no range of events is named
// that ends before it begins.
func TestVerify_otherRoot(t *testing.T) {
	t.Parallel()
	dir, _ := made(t, 28, options())
	other := filepath.Join(t.TempDir(), "other")
	l := open(t, other, options())
	for n := range int64(28) {
		line := strings.Replace(string(event(t, n+1)), "{", `{"a":1,`, 1)
		if err := l.Append([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := ledger.Verify(dir, ledger.Against{Checkpoint: checkpoint(t, l)})
	if fault.ReasonOf(err) != "event_changed" || !strings.Contains(err.Error(), "The kept checkpoint has another root for 28 events") {
		t.Errorf("%v", err)
	}
}

// Whoever changes an event and its hash, and the hash of another event as well,
// does not make that other one the wrong one.
func TestVerify_hashOfAnother(t *testing.T) {
	t.Parallel()
	dir, _ := made(t, 20, options())
	was := []byte(strings.TrimSuffix(strings.SplitAfter(files(t, dir)[filepath.Join("segment", "000000000000.jsonl")], "\n")[5], "\n"))
	now := []byte(strings.Replace(string(was), "{", `{"a":1,`, 1))
	edit(t, segment(dir, 0), swap(string(was), string(now)))
	edit(t, filepath.Join(dir, "tile", "0", "000.p", "20"), func(s string) string {
		old, other := ledger.Leaf(was), ledger.Leaf(now)
		s = strings.Replace(s, string(old[:]), string(other[:]), 1)
		return s[:9*32] + strings.Repeat("x", 32) + s[10*32:]
	})
	_, err := ledger.Verify(dir, ledger.Against{})
	if fault.ReasonOf(err) != "event_changed" || !strings.Contains(err.Error(), "One of the events 1 to 20") {
		t.Errorf("%v", err)
	}
}
