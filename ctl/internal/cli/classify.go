package cli

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"writ"
	"writ/fault"
	"writ/shell"
)

func (p *program) classifyCommand() *cobra.Command {
	var declared, batch, score string
	var extra []string
	cmd := &cobra.Command{
		Use:   "classify ['COMMAND']",
		Short: "Say what a shell command may do, which words say so, and its class",
		Long: `Judge a command as bash would run it, without running it: its class, its effects, the
words they come from and, where it is known, what would make it read-only. The command
is one argument, so put it in quotes. Needs no gate.

--batch reads a file of JSON objects with cmd, one a line ("-" is the standard input),
and writes one object a line, in order; a line that cannot be read is config_mutation.
--score compares with expect, a class, and fails when something else than read_only is
called read_only.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			ways := len(args)
			for _, file := range []string{batch, score} {
				if file != "" {
					ways++
				}
			}
			if ways != 1 {
				return fault.New(fault.Invalid, "Name either one command, in quotes, or --batch FILE, or --score FILE.")
			}
			class := writ.Class(declared)
			if declared != "" && !slices.Contains(writ.Classes(), class) {
				return fault.New(fault.Invalid, "%q is no class: declare one of %v.", declared, writ.Classes())
			}
			k, err := knowledge(extra)
			if err != nil {
				return err
			}
			switch {
			case batch != "":
				return p.withInput(batch, func(in io.Reader) error { return p.classifyBatch(k, in) })
			case score != "":
				return p.withInput(score, func(in io.Reader) error { return p.classifyScore(k, in) })
			}
			p.showVerdict(k.Explain(args[0]), class)
			return nil
		},
	}
	cmd.Flags().StringVar(&declared, "declared", "", "the class that was declared: the stricter of the two counts")
	cmd.Flags().StringVar(&batch, "batch", "", "judge every line of a file")
	cmd.Flags().StringVar(&score, "score", "", "judge every line of a labelled file, and compare")
	addKnowledge(cmd, &extra)
	return cmd
}

func addKnowledge(cmd *cobra.Command, extra *[]string) {
	cmd.Flags().StringArrayVar(extra, "knowledge", nil, "a directory with knowledge of your own; may be given again")
}

// knowledge loads what is shipped, and an operator's own.
func knowledge(extra []string) (*shell.Knowledge, error) {
	var own []fs.FS
	for _, dir := range extra {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fault.Wrap(fault.NotFound, err, "There is no directory %s.", dir)
		}
		own = append(own, os.DirFS(dir))
	}
	return shell.Load(shell.Shipped(), own...)
}

// withInput hands out a file, or the standard input for "-".
func (p *program) withInput(name string, use func(io.Reader) error) error {
	if name == "-" {
		return use(p.stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "The file %s cannot be read.", name)
	}
	defer f.Close()
	return use(f)
}

// judged is a verdict with the class that was declared. Class is the stricter one.
type judged struct {
	shell.Verdict
	Declared writ.Class `json:"declared,omitempty"`
	Computed writ.Class `json:"computed,omitempty"` // what the classifier says, where something was declared
}

func (p *program) showVerdict(v shell.Verdict, declared writ.Class) {
	j := judged{Verdict: v}
	if declared != "" {
		j.Declared, j.Computed, j.Class = declared, v.Class, v.Class.Stricter(declared)
		j.NeedsLimit = v.NeedsLimit && j.Class == writ.ReadOnly
	}
	p.print(j, func() {
		limit := ""
		if j.NeedsLimit {
			limit = ", only under a time and output limit"
		}
		p.say("%s%s", p.paint(classColour(j.Class), p.bold(string(j.Class))), limit)
		if declared != "" && declared != v.Class {
			p.say("Declared %s, judged %s: the stricter one counts.", declared, v.Class)
		}
		telling := telling(v)
		p.say("")
		for _, l := range marked(v.Command, telling, terminal(p.stdout)) {
			p.say("    %s", l)
		}
		p.say("")
		p.table("", func(row func(...string)) {
			for _, e := range v.Evidence {
				row(string(e.Effect), e.Rule, e.Text)
			}
		})
		if v.Hint != "" {
			p.say("\nTo make it read-only: %s", line(v.Hint))
		}
	})
}

// telling returns the evidence that decides the class: all of it where the
// command only reads.
func telling(v shell.Verdict) []shell.Evidence {
	if v.Class == writ.ReadOnly {
		return v.Evidence
	}
	return slices.DeleteFunc(slices.Clone(v.Evidence), func(e shell.Evidence) bool { return e.Effect.Class() == writ.ReadOnly })
}

// marked shows a command line by line with the words of the evidence
// underlined: by the terminal, or by a line of carets below.
func marked(command string, list []shell.Evidence, terminal bool) (lines []string) {
	under := make([]bool, len(command)+1)
	for _, e := range list {
		for i := max(e.Start, 0); i < min(e.End, len(command)); i++ {
			under[i] = true
		}
	}
	offset := 0
	for text := range strings.Lines(command) {
		var shown, carets strings.Builder
		on := false
		for i, r := range strings.TrimSuffix(text, "\n") {
			if now := under[offset+i]; now != on && terminal {
				shown.WriteString(map[bool]string{true: "\x1b[4m", false: "\x1b[24m"}[now])
				on = now
			}
			cell := line(string(r))
			shown.WriteString(cell)
			sign := " "
			if under[offset+i] {
				sign = "^"
			}
			if !unicode.Is(unicode.Mn, r) { // stands on the sign before it
				carets.WriteString(strings.Repeat(sign, len([]rune(cell))))
			}
		}
		if on {
			shown.WriteString("\x1b[24m")
		}
		lines = append(lines, shown.String())
		if below := strings.TrimRight(carets.String(), " "); below != "" && !terminal {
			lines = append(lines, below)
		}
		offset += len(text)
	}
	return lines
}

func classColour(c writ.Class) string {
	switch c {
	case writ.ReadOnly:
		return green
	case writ.Destructive:
		return red
	}
	return yellow
}

// classifyScore prints how the verdicts compare with the labels.
func (p *program) classifyScore(k *shell.Knowledge, in io.Reader) error {
	lines, err := shell.ReadCorpus(in)
	if err != nil {
		return err
	}
	s := shell.Score(k, lines)
	p.print(s, func() {
		var b strings.Builder
		s.Write(&b)
		p.say("%s", strings.TrimRight(plain(b.String()), "\n"))
		for _, m := range s.Allowed {
			p.say("%s %s: %s is called read_only", p.paint(red, "allowed"), m.Line.Expect, line(fmt.Sprintf("%q", m.Line.Cmd)))
		}
	})
	if s.FalseAllow.Missed > 0 {
		return exit(1)
	}
	return nil
}
