package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"writ"
	"writ/api"
	"writ/fault"
)

// principalInfo is who may call, as the gate's program lists it.
type principalInfo struct {
	Name   string      `json:"name"`
	Kind   string      `json:"kind"`
	Roles  []string    `json:"roles"`
	Tokens []tokenInfo `json:"tokens"`
}

type tokenInfo struct {
	ID         string    `json:"id"`
	Label      string    `json:"label"`
	State      string    `json:"state"`
	CreatedAt  writ.Time `json:"created_at"`
	ExpiresAt  writ.Time `json:"expires_at"`
	RevokedAt  writ.Time `json:"revoked_at"`
	LastUsedAt writ.Time `json:"last_used_at"`
}

// principals asks the gate's program who may call.
func (p *program) principals(cmd *cobra.Command) (all []principalInfo, err error) {
	h, err := p.home()
	if err != nil {
		return nil, err
	}
	err = p.ask(cmd.Context(), h, &all, gateProgram, "list-principals")
	return all, err
}

func (p *program) tokensCommand() *cobra.Command {
	return noun("tokens", "List, add, replace and end the tokens of who may call the gate",
		p.listTokensCommand(), p.addTokenCommand(), p.rotateTokenCommand(), p.revokeTokenCommand())
}

func (p *program) listTokensCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List all tokens: whose, until when, and when they were used last",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := p.principals(cmd)
			if err != nil {
				return err
			}
			p.print(all, func() {
				now := p.sys.Now()
				p.table("TOKEN\tOF\tSTATE\tLABEL\tAGE\tENDS\tUSED", func(row func(...string)) {
					for _, who := range all {
						for _, t := range who.Tokens {
							ends := "never"
							if !t.ExpiresAt.IsZero() {
								ends = t.ExpiresAt.Format(time.DateOnly)
							}
							row(t.ID, who.Kind+":"+who.Name, t.State, t.Label, ago(now, t.CreatedAt), ends, ago(now, t.LastUsedAt))
						}
					}
				})
			})
			return nil
		},
	}
}

// ago is the age of what happened at a time, "-" if that is not known.
func ago(now time.Time, t writ.Time) string {
	if t.IsZero() {
		return "-"
	}
	return age(now, t)
}

// newToken is how the flags of a command describe a token to be made.
type newToken struct{ label, expires string }

func (n *newToken) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.label, "label", "", "where the token is, or what for")
	cmd.Flags().StringVar(&n.expires, "expires", "", "when the token ends: 30d, 12h or never (default 90d for an agent, 365d for a person)")
}

// args are the same flags for the gate's program.
func (n *newToken) args() (args []string) {
	if n.label != "" {
		args = append(args, "--label", n.label)
	}
	if n.expires != "" {
		args = append(args, "--expires", n.expires)
	}
	return args
}

// madeToken is a token as the gate's program prints it once.
type madeToken struct {
	Token string `json:"token"`
	ID    string `json:"token_id"`
}

// makeToken lets the gate's program make another token of somebody.
func (p *program) makeToken(ctx context.Context, h *home, name string, t newToken) (made madeToken, err error) {
	err = p.ask(ctx, h, &made, gateProgram, append([]string{"add-token", name}, t.args()...)...)
	return made, err
}

func (p *program) addTokenCommand() *cobra.Command {
	var t newToken
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Give somebody who may call another token",
		Long: `Give somebody who may call another token, for another machine or client. It is stored in
tokens/NAME.token, or if there is one, in a file with the token's own name beside it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := p.home()
			if err != nil {
				return err
			}
			made, err := p.makeToken(cmd.Context(), h, args[0], t)
			if err != nil {
				return err
			}
			path := h.tokenFile(args[0])
			err = create(path, made.Token+"\n")
			if fault.CodeOf(err) == fault.Conflict {
				path = h.tokenFile(args[0] + "." + made.ID)
				err = create(path, made.Token+"\n")
			}
			if err != nil {
				return err
			}
			p.print(map[string]string{"name": args[0], "token_id": made.ID, "token_file": path}, func() {
				p.say("The token %s of %s is in %s. Those there were before stay good.", made.ID, args[0], path)
			})
			return nil
		},
	}
	t.flags(cmd)
	return cmd
}

func (p *program) rotateTokenCommand() *cobra.Command {
	var t newToken
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Put a new token into tokens/NAME.token, and revoke the one that was there",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := p.home()
			if err != nil {
				return err
			}
			old, err := h.token(args[0])
			if err != nil {
				return err
			}
			oldID := api.TokenID(api.TokenDigest(old))
			made, err := p.makeToken(cmd.Context(), h, args[0], t)
			if err != nil {
				return err
			}
			path := h.tokenFile(args[0])
			if err = create(path+".new", made.Token+"\n"); err == nil {
				err = os.Rename(path+".new", path)
			}
			if err != nil {
				return fault.Wrap(fault.Unavailable, err, "The new token could not be put into %s. End it: writ tokens revoke %s", path, made.ID)
			}
			// One that was dropped from the list is good for nothing already.
			var gone exit
			err = p.ask(cmd.Context(), h, nil, gateProgram, "revoke-token", oldID)
			if err != nil && (!errors.As(err, &gone) || int(gone) != fault.NotFound.Row().Exit) {
				return err
			}
			p.print(map[string]string{"name": args[0], "token_id": made.ID, "revoked": oldID, "token_file": path}, func() {
				p.say("The token %s of %s is in %s now; %s is revoked.", made.ID, args[0], path, oldID)
			})
			return nil
		},
	}
	t.flags(cmd)
	return cmd
}

func (p *program) revokeTokenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "End a token now and for ever",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := p.home()
			if err != nil {
				return err
			}
			var gone struct {
				Name string `json:"name"`
			}
			if err := p.ask(cmd.Context(), h, &gone, gateProgram, "revoke-token", args[0]); err != nil {
				return err
			}
			p.print(map[string]string{"name": gone.Name, "token_id": args[0]}, func() {
				p.say("%s of %s is taken no more.", line(args[0]), line(gone.Name))
			})
			return nil
		},
	}
}
