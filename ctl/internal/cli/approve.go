package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"writ"
	"writ/api"
	"writ/fault"
)

func (p *program) approveCommand() *cobra.Command {
	var yes, noWait bool
	var phrase string
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Read what a change will do, approve exactly that, and see what comes of it",
		Long: `Show a change as the gate rendered it, ask, and approve exactly what was shown: the
approval is good for nothing else, for one use, and for a short time. Then wait until
the change has ended.

Whoever asked for a change cannot approve it, and an agent can approve nothing.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, id := cmd.Context(), args[0]
			g, err := p.gate(deciding)
			if err != nil {
				return err
			}
			r, err := g.Review(ctx, id)
			if err != nil {
				return err
			}
			text := plain(r.Text)
			if shown := writ.DigestBytes([]byte(text)); shown != r.ShownDigest {
				return fault.New(fault.Stale, "What the gate sent is not what it says it shows, so nothing was approved. Are gate and writ of one version?").Because("shown_differs")
			}
			if !p.asJSON {
				p.say("%s", strings.TrimRight(text, "\n"))
				p.say("")
			}
			if phrase, err = p.confirm(r.Phrase, phrase, yes); err != nil {
				return err
			}
			c, err := g.Approve(ctx, id, api.Agreement{EnvelopeDigest: r.EnvelopeDigest, ShownDigest: r.ShownDigest, Phrase: phrase})
			if err != nil {
				return err
			}
			if c.State == "awaiting_approval" || noWait {
				p.print(c, func() { p.say("You approved %s. %s", line(id), line(c.Next)) })
				return nil
			}
			return p.follow(ctx, g, c, false)
		},
		ValidArgsFunction: p.completeChange,
	}
	f := cmd.Flags()
	f.BoolVar(&yes, "yes", false, "do not ask (needed where nobody is at the terminal)")
	f.StringVar(&phrase, "phrase", "", "the phrase that the review asks for")
	f.BoolVar(&noWait, "no-wait", false, "do not wait for what comes of it")
	return cmd
}

// confirm asks the person at the terminal and returns the phrase that was typed.
func (p *program) confirm(wanted, given string, yes bool) (string, error) {
	if yes && wanted == "" {
		return "", nil
	}
	if wanted != "" && given != "" {
		return given, nil
	}
	if !terminal(p.stdin) {
		if wanted != "" {
			return "", fault.New(fault.Invalid, "This one asks for a phrase, and nobody is at the terminal to type it. Add: --phrase %q", wanted)
		}
		return "", fault.New(fault.Invalid, "Nobody is at the terminal to be asked. If you have read what will be done, add: --yes")
	}
	question := "Approve exactly this? [y/N] "
	if wanted != "" {
		question = fmt.Sprintf("To approve exactly this, type %s: ", line(wanted))
	}
	fmt.Fprint(p.stdout, question)
	answer, err := bufio.NewReader(p.stdin).ReadString('\n')
	answer = strings.TrimSpace(answer)
	agreed := wanted != "" && answer == wanted || wanted == "" && (strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes"))
	if err != nil || !agreed {
		return "", fault.New(fault.Canceled, "Nothing was approved.")
	}
	if wanted == "" {
		return "", nil
	}
	return answer, nil
}
