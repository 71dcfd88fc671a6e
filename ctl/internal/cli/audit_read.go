package cli

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"writ"
	"writ/client"
	"writ/fault"
	"writ/ledger"
)

// auditFilter selects events, of the gate or of a directory.
type auditFilter struct {
	dir, change, principal, target, action, since, until string
}

func (f *auditFilter) flags(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.dir, "ledger", "", "read this directory, offline, and not the gate's answers")
	s.StringVar(&f.change, "change", "", "events of one change")
	s.StringVar(&f.principal, "principal", "", "events that a principal caused: a name, human:NAME or agent:NAME")
	s.StringVar(&f.target, "target", "", "events about a system, or about an entity and all below it")
	s.StringVar(&f.action, "action", "", "events about an action, or all of a system with proxmox.*")
	s.StringVar(&f.since, "since", "", "not older than a time (2026-05-04T03:02:01Z) or a duration (24h)")
	s.StringVar(&f.until, "until", "", "not newer than a time or a duration")
}

// selects reports whether an event is wanted.
func (f *auditFilter) selects(now time.Time) (func(line []byte) (bool, error), error) {
	since, err := moment(f.since, now)
	if err != nil {
		return nil, err
	}
	until, err := moment(f.until, now)
	if err != nil {
		return nil, err
	}
	return func(line []byte) (bool, error) {
		var e struct {
			Timestamp writ.Time `json:"timestamp"`
			ChangeID  string    `json:"change_id"`
			User      string    `json:"user"`
			System    string    `json:"target_system"`
			Entity    string    `json:"entity"`
			Action    string    `json:"action_type"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return false, unreadableEvent(err)
		}
		_, name, _ := strings.Cut(e.User, ":")
		family, all := strings.CutSuffix(f.action, "*")
		return (f.change == "" || e.ChangeID == f.change) &&
			(f.principal == "" || e.User == f.principal || name == f.principal) &&
			(f.target == "" || e.System == f.target || e.Entity == f.target || strings.HasPrefix(e.Entity, f.target+"/")) &&
			(f.action == "" || e.Action == f.action || all && strings.HasPrefix(e.Action, family)) &&
			(since.IsZero() || !e.Timestamp.Before(since)) &&
			(until.IsZero() || !e.Timestamp.After(until)), nil
	}, nil
}

// moment reads a time, or a duration before now.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.New(fault.Invalid, "%q is no time like 2026-05-04T03:02:01Z and no duration like 24h.", text)
}

// each gives the events that are wanted to do.
func (p *program) each(ctx context.Context, f *auditFilter, do func(sequence int64, line []byte) error) error {
	wanted, err := f.selects(p.sys.Now())
	if err != nil {
		return err
	}
	filtered := func(sequence int64, line []byte) error {
		if ok, err := wanted(line); err != nil || !ok {
			return err
		}
		return do(sequence, line)
	}
	if f.dir != "" {
		r, err := ledger.Read(f.dir)
		if err != nil {
			return err
		}
		defer r.Close()
		return r.Each(0, filtered)
	}
	g, err := p.gate(looking)
	if err != nil {
		return err
	}
	// The gate selects, and what it selected is looked at again.
	asked := client.EventFilter{ChangeID: f.change, User: f.principal, Target: f.target, Action: f.action}
	for text, at := range map[string]*writ.Time{f.since: &asked.Since, f.until: &asked.Until} {
		t, err := moment(text, p.sys.Now())
		if err != nil {
			return err
		}
		if !t.IsZero() {
			*at = writ.At(t)
		}
	}
	_, err = events(ctx, g, asked, filtered)
	return err
}

func (p *program) auditListCommand() *cobra.Command {
	f := new(auditFilter)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List audit events by change, principal, target, action and time",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.each(cmd.Context(), f, func(_ int64, line []byte) error { return p.event(line) })
		},
	}
	f.flags(cmd)
	return cmd
}

func (p *program) auditExportCommand() *cobra.Command {
	f := new(auditFilter)
	var out string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write audit events to a file, as the exact lines of the audit",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return fault.Wrap(fault.Conflict, err, "%s cannot be made. Name a file that does not exist yet: writ audit export -o FILE", out)
			}
			w, count := bufio.NewWriter(file), 0
			err = p.each(cmd.Context(), f, func(_ int64, line []byte) error {
				count++
				_, err := w.Write(append(line[:len(line):len(line)], '\n'))
				return err
			})
			if err = errors.Join(err, w.Flush(), file.Sync(), file.Close()); err != nil {
				return errors.Join(err, os.Remove(out))
			}
			p.print(struct {
				File   string `json:"file"`
				Events int    `json:"events"`
			}{out, count}, func() { p.say("%d events written to %s", count, line(out)) })
			return nil
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file to make")
	return cmd
}

func (p *program) auditShowCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "show SEQUENCE",
		Short: "Print one audit event; offline, with the proof that the checkpoint covers it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sequence, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || sequence < 1 {
				return fault.Wrap(fault.Invalid, err, "%.20q is no sequence of an event. See which there are: writ audit list", args[0])
			}
			if dir != "" {
				return p.showProven(dir, sequence)
			}
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			page, err := g.Events(cmd.Context(), client.EventFilter{After: sequence - 1, Limit: 1})
			if err != nil {
				return err
			}
			if len(page.Events) == 0 {
				return noEvent(sequence)
			}
			p.printTo(p.stdout, page.Events[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "ledger", "", "read this directory, offline, and not the gate's answers")
	return cmd
}

// proven is an event and the proof that a checkpoint covers it.
type proven struct {
	Sequence   int64           `json:"sequence"`
	Event      json.RawMessage `json:"event"`
	Proof      []string        `json:"proof"`
	Checkpoint string          `json:"checkpoint"`
}

// showProven prints an event of a directory, after its proof was checked.
func (p *program) showProven(dir string, sequence int64) error {
	r, err := ledger.Read(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	text, err := lineOf(r, sequence)
	if err != nil {
		return err
	}
	signed, c := r.Checkpoint()
	proof, err := r.Prove(sequence)
	if err == nil {
		err = ledger.Proves(c, sequence, text, proof)
	}
	if err != nil {
		return err
	}
	p.printTo(p.stdout, proven{sequence, text, hashes(proof), string(signed)})
	return nil
}

// lineOf returns one line of a ledger.
func lineOf(r *ledger.Reader, sequence int64) (text []byte, err error) {
	found := errors.New("found")
	err = r.Each(sequence-1, func(_ int64, line []byte) error {
		text = append([]byte(nil), line...)
		return found
	})
	switch {
	case errors.Is(err, found):
		return text, nil
	case err == nil:
		err = noEvent(sequence)
	}
	return nil, err
}

func noEvent(sequence int64) error {
	return fault.New(fault.NotFound, "There is no event %d. See which there are: writ audit list", sequence)
}

func hashes(proof []ledger.Hash) []string {
	all := make([]string, len(proof))
	for i, h := range proof {
		all[i] = base64.StdEncoding.EncodeToString(h[:])
	}
	return all
}
