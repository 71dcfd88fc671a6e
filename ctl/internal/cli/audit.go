package cli

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"writ"
	"writ/client"
	"writ/fault"
)

func (p *program) auditCommand() *cobra.Command {
	return noun("audit", "Read the audit events, or verify them offline", p.auditTailCommand(), p.auditListCommand(),
		p.auditShowCommand(), p.auditExportCommand(), p.auditCheckpointCommand(), p.auditVerifyCommand())
}

func (p *program) auditTailCommand() *cobra.Command {
	var count int
	var follow bool
	var change string
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the newest audit events; with --json as the exact lines of the audit",
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
			if follow && change != "" {
				return g.Follow(ctx, change, 0, func(e json.RawMessage) error { return p.event(e) })
			}
			show := func(_ int64, line []byte) error { return p.event(line) }
			for {
				if f.After, err = events(ctx, g, f, show); err != nil || !follow {
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
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new events until interrupted, or until the change has ended")
	cmd.Flags().StringVar(&change, "change", "", "all events of one change")
	return cmd
}

// eventPage is how many events one call asks for.
const eventPage = 500

// events gives all events that a filter selects to do and returns the last sequence.
func events(ctx context.Context, g *client.Client, f client.EventFilter, do func(int64, []byte) error) (int64, error) {
	f.Limit = eventPage
	for {
		page, err := g.Events(ctx, f)
		if err != nil {
			return f.After, err
		}
		for _, raw := range page.Events {
			var e struct {
				Sequence int64 `json:"sequence"`
			}
			if err := json.Unmarshal(raw, &e); err != nil || e.Sequence <= f.After {
				return f.After, unreadableEvent(err)
			}
			f.After = e.Sequence
			if err := do(e.Sequence, raw); err != nil {
				return f.After, err
			}
		}
		if len(page.Events) < eventPage {
			return f.After, nil
		}
	}
}

func unreadableEvent(cause error) error {
	return fault.Wrap(fault.Internal, cause, "There is an event that cannot be read. Verify the audit: writ audit verify")
}

// event prints one event.
func (p *program) event(raw []byte) error {
	switch {
	case p.asJSON && terminal(p.stdout):
		p.say("%s", jsonText(string(raw)))
		return nil
	case p.asJSON:
		p.say("%s", raw)
		return nil
	}
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
		return unreadableEvent(err)
	}
	text := ""
	for _, word := range []string{e.User, e.ChangeID, e.Step, e.Action, e.Entity, e.Status} {
		if word != "" {
			text += "  " + line(word)
		}
	}
	p.say("%6d  %s  %-18s%s%s", e.Sequence, when(e.Timestamp), line(e.Event), text, reason(e.Reason))
	return nil
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

func (p *program) auditCheckpointCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint",
		Short: "Print a signed checkpoint of all audit events; keep it elsewhere, to verify with it later",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			c, err := g.Checkpoint(cmd.Context())
			if err != nil {
				return err
			}
			// A file made of the text must be the checkpoint, byte for byte.
			p.print(c, func() { _, _ = p.stdout.Write([]byte(c.Checkpoint)) })
			return nil
		},
	}
}

// ledgerDir is the directory of the audit that a command was given, or the gate's.
func (p *program) ledgerDir(args []string) (string, error) {
	path := ""
	if len(args) == 1 {
		path = args[0]
	} else {
		h, err := p.home()
		if err != nil {
			return "", err
		}
		path = h.path("gate", "audit")
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return "", fault.Wrap(fault.NotFound, err, "There is no audit in %s. Name the directory that gate.yaml has at audit.", filepath.Clean(path))
	}
	return path, nil
}
