package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"writ"
	"writ/fault"
	"writ/ledger"
)

// chain returns n linked lines.
func chain(t testing.TB, n int) [][]byte {
	t.Helper()
	lines, head := make([][]byte, n), ledger.Start
	for i := range lines {
		var err error
		lines[i], head, err = ledger.Link(head, writ.Object{"sequence": int64(i + 1), "event": "change.proposed", "user": "agent:planner"})
		if err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// text returns lines as an audit file.
func text(lines ...[]byte) []byte {
	var b []byte
	for _, l := range lines {
		b = append(append(b, l...), '\n')
	}
	return b
}

func TestVerify(t *testing.T) {
	t.Parallel()
	lines := chain(t, 3)
	for _, c := range []struct {
		name string
		text []byte
		want ledger.Report
	}{
		{"nothing", nil, ledger.Report{Head: ledger.Start}},
		{"three lines", text(lines...), ledger.Report{Events: 3, Bytes: int64(len(text(lines...))), Head: writ.DigestBytes(lines[2])}},
		{"a whole line without its newline", text(lines...)[:len(text(lines...))-1], ledger.Report{Events: 2, Bytes: int64(len(text(lines[:2]...))), Head: writ.DigestBytes(lines[1]), Torn: true}},
		{"a torn first line", []byte("{"), ledger.Report{Head: ledger.Start, Torn: true}},
	} {
		got, err := ledger.Verify(iotest.HalfReader(bytes.NewReader(c.text)))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

func TestVerify_namesTheFirstWrongLine(t *testing.T) {
	t.Parallel()
	lines := chain(t, 4)
	edit := func(i int, old, with string) [][]byte {
		edited := append([][]byte(nil), lines...)
		edited[i] = bytes.Replace(lines[i], []byte(old), []byte(with), 1)
		return edited
	}
	for _, c := range []struct {
		name   string
		lines  [][]byte
		events int64
		reason string
	}{
		{"a line removed", [][]byte{lines[0], lines[2], lines[3]}, 1, "sequence_gap"},
		{"the first line removed", lines[1:], 0, "sequence_gap"},
		{"a line twice", [][]byte{lines[0], lines[1], lines[1]}, 2, "sequence_gap"},
		{"two lines exchanged", [][]byte{lines[0], lines[2], lines[1]}, 1, "sequence_gap"},
		{"a word changed", edit(1, "planner", "nobody1"), 2, "broken_link"},
		{"a sequence as text", edit(1, `"sequence":2`, `"sequence":"2"`), 1, "sequence_gap"},
		{"a space", edit(2, ":", ": "), 2, "not_canonical"},
		{"a member twice", edit(2, "{", `{"user":"x",`), 2, "bad_form"},
		{"another format", edit(0, "event/1", "event/2"), 0, "bad_form"},
		{"a list", [][]byte{lines[0], []byte("[]")}, 1, "bad_form"},
		{"an empty line", [][]byte{lines[0], nil, lines[1]}, 1, "bad_form"},
		{"a carriage return", edit(1, "}", "}\r"), 1, "not_canonical"},
		{"a line too long", [][]byte{lines[0], bytes.Repeat([]byte{' '}, writ.MaxSize+1)}, 1, "bad_form"},
	} {
		report, err := ledger.Verify(bytes.NewReader(text(c.lines...)))
		if fault.CodeOf(err) != fault.Invalid || fault.ReasonOf(err) != c.reason || report.Events != c.events {
			t.Errorf("%s: %d events, %v (%s), want %d and %s", c.name, report.Events, err, fault.ReasonOf(err), c.events, c.reason)
		}
		if want := fmt.Sprintf("Line %d ", c.events+1); err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q does not name the line", c.name, err)
		}
	}
}

// A byte changed in any line but the last is always found; in the last line,
// which nothing links to, the head at least differs.
func TestVerify_everyByteCounts(t *testing.T) {
	t.Parallel()
	good := text(chain(t, 3)...)
	whole, err := ledger.Verify(bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		report, err := ledger.Verify(bytes.NewReader(bad))
		if err == nil && report.Head == whole.Head {
			t.Errorf("byte %d changed from %q to %q: %s", i, good[i], bad[i], report)
		}
	}
}

func TestVerify_aFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := ledger.Verify(iotest.ErrReader(errors.New("broken")))
	if fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
}

func TestReport_saysNoMoreThanItKnows(t *testing.T) {
	t.Parallel()
	report, err := ledger.Verify(bytes.NewReader(append(text(chain(t, 2)...), "{"...)))
	if err != nil {
		t.Fatal(err)
	}
	want := "2 events, intact as a prefix; head " + string(report.Head) + "; a torn line follows"
	if report.String() != want {
		t.Errorf("got %q, want %q", report, want)
	}
}

func FuzzVerify(f *testing.F) {
	lines := chain(f, 3)
	f.Add(text(lines...))
	f.Add(text(lines...)[:200])
	f.Add([]byte("{}\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		report, err := ledger.Verify(bytes.NewReader(data))
		if report.Events < 0 || report.Bytes > int64(len(data)) || !report.Head.Valid() {
			t.Fatalf("an impossible report: %+v", report)
		}
		if err == nil && report.Torn != (report.Bytes < int64(len(data))) {
			t.Fatalf("%+v of %d bytes", report, len(data))
		}
		// What is reported is a file of its own, with the same report.
		report.Torn = false
		again, err := ledger.Verify(bytes.NewReader(data[:report.Bytes]))
		if err != nil || again != report {
			t.Fatalf("the prefix: %+v, %v, want %+v", again, err, report)
		}
		// Linking its events anew gives the same bytes.
		head, relinked := ledger.Start, []byte(nil)
		for line := range bytes.Lines(data[:report.Bytes]) {
			parsed, err := writ.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			event := parsed.(writ.Object)
			delete(event, "format")
			delete(event, "previous")
			var next []byte
			if next, head, err = ledger.Link(head, event); err != nil {
				t.Fatal(err)
			}
			relinked = append(append(relinked, next...), '\n')
		}
		if head != report.Head || !bytes.Equal(relinked, data[:report.Bytes]) {
			t.Fatalf("linking the same events gives another file, with head %s instead of %s", head, report.Head)
		}
	})
}

// BenchmarkVerify verifies events of the usual size; x-sha256 is how many times
// longer that takes than hashing the same bytes.
func BenchmarkVerify(b *testing.B) {
	var lines [][]byte
	head := ledger.Start
	for i := range 2000 {
		line, next, err := ledger.Link(head, writ.Object{"sequence": int64(i + 1), "detail": writ.Object{"text": strings.Repeat("x", 400)}, "status": "done"})
		if err != nil {
			b.Fatal(err)
		}
		lines, head = append(lines, line), next
	}
	file := text(lines...)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := ledger.Verify(bytes.NewReader(file)); err != nil {
			b.Fatal(err)
		}
	}
	verifying := b.Elapsed() / time.Duration(b.N)
	const rounds = 50
	start := time.Now()
	for range rounds {
		sha256.Sum256(file)
	}
	b.ReportMetric(float64(verifying)/float64(time.Since(start)/rounds), "x-sha256")
}
