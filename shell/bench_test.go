package shell_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"writ/shell"
)

// benchCorpora are our own lines, and the shared ones where they are present.
func benchCorpora(b *testing.B) map[string][]string {
	b.Helper()
	own, err := filepath.Glob("testdata/*.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	files := map[string][]string{"own": own}
	if dir := os.Getenv("WRIT_CORPUS"); dir != "" {
		for _, name := range []string{"benign", "gtfobins", "tldr", "tricks"} {
			files[name] = []string{filepath.Join(dir, name+".open.jsonl")}
		}
	}
	corpora := map[string][]string{}
	for name, list := range files {
		for _, file := range list {
			f, err := os.Open(file)
			if err != nil {
				b.Fatal(err)
			}
			lines, err := shell.ReadCorpus(f)
			f.Close()
			if err != nil {
				b.Fatal(err)
			}
			for _, l := range lines {
				corpora[name] = append(corpora[name], l.Cmd)
			}
		}
	}
	return corpora
}

// BenchmarkClassify reports, beside the mean that Go reports, the median and
// the 99th percentile of the lines, and the median as a multiple of that of
// parsing alone, measured in the same run. The budget is 1.5.
func BenchmarkClassify(b *testing.B) {
	k := load(b)
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	for name, lines := range benchCorpora(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				k.Classify(lines[i%len(lines)])
			}
			b.StopTimer()
			classify := timed(lines, func(s string) { k.Classify(s) })
			parse := timed(lines, func(s string) { _, _ = parser.Parse(strings.NewReader(s), "") })
			n := len(lines)
			b.ReportMetric(float64(classify[n/2]), "p50-ns")
			b.ReportMetric(float64(classify[n*99/100]), "p99-ns")
			b.ReportMetric(float64(parse[n/2]), "parse-p50-ns")
			b.ReportMetric(float64(parse[n*99/100]), "parse-p99-ns")
			b.ReportMetric(float64(classify[n/2])/float64(parse[n/2]), "x-parse")
		})
	}
}

// timed returns how long each line takes, sorted: of several rounds the
// shortest, in which nothing else had the processor.
func timed(lines []string, do func(string)) []time.Duration {
	const rounds, times = 7, 8
	list := make([]time.Duration, len(lines))
	for i, s := range lines {
		list[i] = time.Hour
		for range rounds {
			start := time.Now()
			for range times {
				do(s)
			}
			list[i] = min(list[i], time.Since(start)/times)
		}
	}
	slices.Sort(list)
	return list
}

// BenchmarkParse is parsing alone.
func BenchmarkParse(b *testing.B) {
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash))
	lines := benchCorpora(b)["own"]
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_, _ = parser.Parse(strings.NewReader(lines[i%len(lines)]), "")
	}
}

// BenchmarkLoad is what a program waits for when it starts. The budget is 20 ms.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		load(b)
	}
}
