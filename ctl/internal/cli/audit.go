package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"writ"
	"writ/client"
	"writ/fault"
	"writ/ledger"
)

func (p *program) auditCommand() *cobra.Command {
	return noun("audit", "Read the audit events, or verify them offline", p.auditTailCommand(), p.auditVerifyCommand())
}

func (p *program) auditTailCommand() *cobra.Command {
	var count int
	var follow bool
	var change string
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the newest audit events; with --json as the exact lines of the audit file",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			f := client.EventFilter{ChangeID: change}
			if change == "" {
				last, err := lastEvent(ctx, g)
				if err != nil {
					return err
				}
				f.After = max(0, last-int64(count))
			}
			for {
				if f.After, err = p.events(ctx, g, f); err != nil || !follow {
					return err
				}
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(time.Second):
				}
			}
		},
	}
	cmd.Flags().IntVarP(&count, "lines", "n", 20, "so many events")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new events until interrupted")
	cmd.Flags().StringVar(&change, "change", "", "all events of one change")
	return cmd
}

// eventPage is how many events one call asks for.
const eventPage = 500

// events prints all events that a filter selects and returns the last sequence.
func (p *program) events(ctx context.Context, g *client.Client, f client.EventFilter) (int64, error) {
	f.Limit = eventPage
	for {
		page, err := g.Events(ctx, f)
		if err != nil {
			return f.After, err
		}
		for _, raw := range page.Events {
			if f.After, err = p.event(raw); err != nil {
				return f.After, err
			}
		}
		if len(page.Events) < eventPage {
			return f.After, nil
		}
	}
}

// event prints one event and returns its sequence.
func (p *program) event(raw json.RawMessage) (int64, error) {
	var e struct {
		Sequence  int64     `json:"sequence"`
		Timestamp writ.Time `json:"timestamp"`
		Event     string    `json:"event"`
		ChangeID  string    `json:"change_id"`
		Step      string    `json:"step"`
		Action    string    `json:"action_type"`
		Entity    string    `json:"entity"`
		User      string    `json:"user"`
		Status    string    `json:"status"`
		Reason    string    `json:"reason"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return 0, fault.Wrap(fault.Internal, err, "The gate sent an event that cannot be read.")
	}
	if p.asJSON {
		p.say("%s", raw)
		return e.Sequence, nil
	}
	text := ""
	for _, word := range []string{e.User, e.ChangeID, e.Step, e.Action, e.Entity, e.Status} {
		if word != "" {
			text += "  " + line(word)
		}
	}
	p.say("%6d  %s  %-18s%s%s", e.Sequence, when(e.Timestamp), line(e.Event), text, reason(e.Reason))
	return e.Sequence, nil
}

// lastEvent finds the sequence of the newest event. Sequences have no gaps, so
// that a few questions are enough, however many events there are.
func lastEvent(ctx context.Context, g *client.Client) (int64, error) {
	has := func(sequence int64) (bool, error) {
		page, err := g.Events(ctx, client.EventFilter{After: sequence - 1, Limit: 1})
		return len(page.Events) > 0, err
	}
	low, high := int64(0), int64(1) // low exists (or is 0), high does not
	for {
		there, err := has(high)
		if err != nil {
			return 0, err
		}
		if !there {
			break
		}
		low, high = high, high*2
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		there, err := has(middle)
		if err != nil {
			return 0, err
		}
		if there {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

func (p *program) auditVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Verify an audit file offline: needs no gate, no token and no key",
		Long: `Read an audit file and check that each event follows from the one before. It says
no more than is certain: a file that was cut off at its end is still intact as far as
it goes, so compare the head with one that was written down elsewhere.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var path string
			if len(args) == 1 {
				path = args[0]
			} else {
				h, err := p.home()
				if err != nil {
					return err
				}
				path = h.path("gate", "audit.jsonl")
			}
			f, err := os.Open(path)
			if err != nil {
				return fault.Wrap(fault.NotFound, err, "The audit file %s cannot be read. Name the one that gate.yaml has at audit: writ audit verify FILE", path)
			}
			report, err := ledger.Verify(f)
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
			p.print(struct {
				Events int64       `json:"events"`
				Head   writ.Digest `json:"head"`
				Torn   bool        `json:"torn"`
			}{report.Events, report.Head, report.Torn}, func() { p.say("%s", report.String()) })
			return nil
		},
	}
}
