package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"writ/api"
	"writ/client"
	"writ/fault"
)

func (p *program) waitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a change has ended, and show what came of it",
		Long: `Wait until a change has ended, and show what came of it. The exit status says it
too: 0 done, 3 denied or rejected, 12 failed and the target is as before, 13 applied
but not verified, 14 a rollback failed, 16 unknown, 18 expired, 124 not ended in time.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			c, err := g.Change(ctx, args[0])
			if err != nil {
				return err
			}
			err = p.follow(ctx, g, c, true)
			if fault.CodeOf(err) == fault.Timeout {
				return fault.New(fault.Timeout, "%s has not ended within %s. Look at it: writ show %s", args[0], timeout, args[0])
			}
			return err
		},
		ValidArgsFunction: p.completeChange,
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time, e.g. 90s (default: never)")
	return cmd
}

// How long one call to the gate waits, and how long for an approved change to begin.
const (
	perCall = 20 * time.Second
	toBegin = 3 * time.Second
)

// await asks for a change until enough holds of it as it was and as it is.
// Meanwhile it says, to a person at a terminal, each state that it comes to.
func (p *program) await(ctx context.Context, g *client.Client, c api.Change, enough func(before, now api.Change) bool) (api.Change, error) {
	for before := (api.Change{}); !enough(before, c); {
		patience := perCall
		if c.State == "approved" {
			patience = toBegin
		}
		moved, err := g.Wait(ctx, c.ID, patience)
		if err != nil {
			return c, err
		}
		if moved.State != c.State && !moved.Ended && !p.asJSON && terminal(p.stderr) {
			_, _ = p.stderr.Write([]byte("… " + line(moved.State) + "\n"))
		}
		before, c = c, moved
	}
	return c, nil
}

// completeChange completes ids of changes, newest first.
func (p *program) completeChange(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	g, err := p.gate(looking)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := g.Changes(cmd.Context(), client.ChangeFilter{Limit: 20})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, c := range list.Changes {
		ids = append(ids, line(c.ID)+"\t"+line(c.State)+" "+line(summary(c)))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
