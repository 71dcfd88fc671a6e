package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"writ/api"
	"writ/fault"
)

func (p *program) recoverCommand() *cobra.Command {
	var raise, yes bool
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "After a restore: say what gate and executor do not remember alike, and mend it",
		Long: `After the memory of the gate or the journal of the executor was restored from an old
copy, nothing is changed any more until somebody has looked. Stop "writ up", then:

  writ recover              say what the two do not remember alike; changes nothing
  writ recover --new-epoch  mend it

Mending raises the epoch, so that no writ of before is ever taken. What was open ends.
What was carried out and forgotten becomes unknown and stays locked: writ reconcile.

It takes the owner of the gate's directory, and no token: the gate does not run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := p.home()
			if err != nil {
				return err
			}
			return p.recover(cmd.Context(), h, raise, yes)
		},
	}
	cmd.Flags().BoolVar(&raise, "new-epoch", false, "mend it, and raise the epoch")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask (needed where nobody is at the terminal)")
	return cmd
}

func (p *program) recover(ctx context.Context, h *home, raise, yes bool) error {
	stop, err := p.lendExecutor(ctx, h)
	if err != nil {
		return err
	}
	defer stop()
	var found api.Recovery
	if err := p.ask(ctx, h, &found, gateProgram, "recover"); err != nil {
		return err
	}
	if !raise {
		p.print(found, func() { p.showRecovery(found) })
		return nil
	}
	if !p.asJSON {
		p.showRecovery(found)
	}
	if !yes {
		if !terminal(p.stdin) {
			return fault.New(fault.Invalid, "Nobody is at the terminal to be asked. If you have read what is different, add: --yes")
		}
		fmt.Fprintf(p.stdout, "\nRaise the epoch to %d and do all of this? [y/N] ", found.Next)
		answer, _ := bufio.NewReader(p.stdin).ReadString('\n') // an end of the input is no answer
		if answer = strings.TrimSpace(answer); !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
			return fault.New(fault.Canceled, "Nothing was changed.")
		}
	}
	var done api.Recovery
	if err := p.ask(ctx, h, &done, gateProgram, "recover", "--new-epoch"); err != nil {
		return err
	}
	p.print(done, func() {
		p.say("\nThe epoch is %d now. No writ of before is taken any more.", done.Next)
		if !done.ExecutorTold {
			p.say("The executor did not answer; it learns of it with the next writ that it gets.")
		}
		if done.AuditAside != "" {
			p.say("The audit of the lost memory is kept in %s.", line(done.AuditAside))
		}
		p.say("Next      writ up")
		for _, d := range done.Differences {
			if len(d.Entities) > 0 {
				p.say("          writ reconcile %s", line(d.ChangeID))
			}
		}
	})
	return nil
}

// showRecovery says what is different, one line a change.
func (p *program) showRecovery(r api.Recovery) {
	p.say("The executor has spent %d writs of this gate; none of them is ever taken again. Epoch %d.", r.Spent, r.Epoch)
	if r.Foreign > 0 {
		p.say("It took %d writs that another key sealed. Those are not this gate's to know.", r.Foreign)
	}
	if r.AuditAhead {
		p.say("The audit holds more events than the gate's memory: the memory is older.")
	}
	real := slices.ContainsFunc(r.Differences, func(d api.Difference) bool { return d.Kind != "void" })
	if !real && !r.AuditAhead {
		p.say("Gate and executor remember the same: nothing needs to be mended.")
	}
	if len(r.Differences) == 0 {
		return
	}
	p.say("\nA new epoch makes of them:")
	p.table("CHANGE\tIN MEMORY\tWHAT\tTHEN", func(row func(...string)) {
		for _, d := range r.Differences {
			was := d.Was
			if was == "" {
				was = "not there"
			}
			what := meanings()[d.Kind]
			if len(d.Entities) == 0 && d.Kind == "forgotten_by_gate" {
				what.then = "failed: it only read"
			}
			row(d.ChangeID, was, what.what, what.then)
			for _, entity := range d.Entities {
				row("", "", "", "locked: "+entity)
			}
		}
	})
	if real || r.AuditAhead {
		p.say("\nTo mend it: %s", p.bold("writ recover --new-epoch"))
	}
}

// meaning is what a difference is, and what becomes of it.
type meaning struct{ what, then string }

func meanings() map[string]meaning {
	return map[string]meaning{
		"forgotten_by_gate":     {"the executor carried it out, the gate forgot", "unknown, until reconciled"},
		"forgotten_by_executor": {"the gate handed it over, the executor forgot", "unknown, until reconciled"},
		"accounted_for":         {"the executor accounted for it and forgot", "as it is: the receipts are signed"},
		"void":                  {"it was open", "void: propose it again"},
	}
}

// lendExecutor makes sure that the executor answers: one that does not run is
// started for as long as this takes.
func (p *program) lendExecutor(ctx context.Context, h *home) (stop func(), err error) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", h.path("run", "executor.sock"))
	if err == nil {
		return func() {}, conn.Close()
	}
	said := io.Discard
	if !p.asJSON {
		said = p.stderr
	}
	out := &prefixed{w: said}
	executor, err := p.start(h, executorProgram, out)
	if err != nil {
		return nil, err
	}
	if err := executor.await(ctx); err != nil {
		executor.stop(out, executorStopTime)
		return nil, err
	}
	return func() { executor.stop(out, executorStopTime) }, nil
}
