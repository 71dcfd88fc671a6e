package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"writ/fault"
	"writ/ledger"
)

func (p *program) auditVerifyCommand() *cobra.Command {
	var kept, key string
	var witnesses []string
	cmd := &cobra.Command{
		Use:   "verify [DIR]",
		Short: "Verify an audit offline: needs no gate, no token and no secret",
		Long: `Read an audit and check that every event is the one that was written, as far as that
can be known. With a checkpoint that was kept elsewhere, every change, removal and
insertion before it is found. Without one, an audit that was set back to an earlier state
looks intact: then no more is said than that it is valid as a prefix.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := p.ledgerDir(args)
			if err != nil {
				return err
			}
			against := ledger.Against{Key: key}
			if against.Witnesses, err = parseWitnesses(witnesses); err != nil {
				return err
			}
			if kept != "" {
				if against.Checkpoint, err = os.ReadFile(kept); err != nil {
					return fault.Wrap(fault.NotFound, err, "The checkpoint %s cannot be read.", kept)
				}
			}
			bar := p.bar()
			against.Progress = bar.show
			report, err := ledger.Verify(dir, against)
			bar.clear()
			if err != nil {
				return err
			}
			p.print(verified{
				OK: true, Origin: report.Origin, Key: report.Key, Events: report.Events, Segments: report.Segments, Signed: report.Signed,
				Compared: report.Compared, CompleteTo: report.Kept, Root: report.Root.String(), Cosigned: append([]ledger.Cosigned{}, report.Cosigned...), Torn: report.Torn, Text: report.String(),
			}, func() { p.say("%s\nsigned with %s", line(report.String()), line(report.Key)) })
			return nil
		},
	}
	cmd.Flags().StringVar(&kept, "checkpoint", "", "a checkpoint that was kept elsewhere: a file that writ audit checkpoint printed, or the copy that gate.yaml names")
	cmd.Flags().StringVar(&key, "key", "", "the first public key of the audit, as it was noted elsewhere")
	cmd.Flags().StringArrayVar(&witnesses, "witness", nil, "the public key of a witness (name+id+key) that must have signed the audit; may be given again")
	return cmd
}

func parseWitnesses(keys []string) (all []ledger.Witness, err error) {
	for _, key := range keys {
		w, err := ledger.ParseWitness(key)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// verified is what is certain of an audit.
type verified struct {
	OK         bool              `json:"ok"`
	Origin     string            `json:"origin"`
	Key        string            `json:"key"`
	Events     int64             `json:"events"`
	Segments   int64             `json:"segments"`
	Signed     int64             `json:"signed"`      // events that its own checkpoint covers
	Compared   bool              `json:"compared"`    // with a checkpoint that was kept elsewhere
	CompleteTo int64             `json:"complete_to"` // nothing is missing or changed up to this event
	Root       string            `json:"root"`
	Cosigned   []ledger.Cosigned `json:"cosigned"` // by the witnesses that were asked for
	Torn       bool              `json:"torn"`
	Text       string            `json:"text"`
}

// bar shows how far long work is, to a person at a terminal.
type bar struct {
	p    *program
	last int64 // percent
}

// bar returns a bar that has not been shown.
func (p *program) bar() *bar { return &bar{p: p, last: -1} }

// barWidth is how wide a bar is, in characters.
const barWidth = 40

func (b *bar) show(done, total int64) {
	percent := int64(100)
	if total > 0 {
		percent = done * 100 / total
	}
	if b.p.asJSON || !terminal(b.p.stderr) || percent == b.last || total < barFrom {
		return
	}
	b.last = percent
	full := int(percent * barWidth / 100)
	fmt.Fprintf(b.p.stderr, "\r[%s%s] %3d %%", strings.Repeat("#", full), strings.Repeat("·", barWidth-full), percent)
}

// barFrom is the work, in bytes, that is worth a bar.
const barFrom = 32 << 20

func (b *bar) clear() {
	if b.last >= 0 {
		fmt.Fprintf(b.p.stderr, "\r%*s\r", barWidth+8, "")
	}
}
