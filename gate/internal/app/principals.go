package app

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"writ"
	"writ/fault"
	"writ/gate/internal/auth"
	"writ/gate/internal/config"
	"writ/gate/internal/model"
)

// madeToken is a token that was made, for whoever asked for it.
type madeToken struct {
	Name      string             `json:"name"`
	Kind      writ.PrincipalKind `json:"kind,omitempty"`
	Roles     []model.Role       `json:"roles,omitempty"`
	Token     string             `json:"token"`
	TokenID   string             `json:"token_id"`
	ExpiresAt writ.Time          `json:"expires_at"`
}

// principal is who may call, as list-principals prints it.
type principal struct {
	Name   string             `json:"name"`
	Kind   writ.PrincipalKind `json:"kind"`
	Roles  []model.Role       `json:"roles"`
	Tokens []token            `json:"tokens"`
}

type token struct {
	ID         string     `json:"id"`
	Label      string     `json:"label"`
	State      auth.State `json:"state"`
	CreatedAt  writ.Time  `json:"created_at"`
	ExpiresAt  writ.Time  `json:"expires_at"`
	RevokedAt  writ.Time  `json:"revoked_at"`
	LastUsedAt writ.Time  `json:"last_used_at"`
}

func (p *program) principalCommands() []*cobra.Command {
	return []*cobra.Command{p.addPrincipalCommand(), p.removePrincipalCommand(), p.listPrincipalsCommand(), p.addTokenCommand(), p.revokeTokenCommand()}
}

// people returns the path of the file of principals.
func (p *program) people() (string, error) {
	return filepath.Join(p.dir, config.PrincipalsFile), checkDir(p.dir)
}

func (p *program) addPrincipalCommand() *cobra.Command {
	var kind string
	var roles []string
	var wanted newToken
	cmd := &cobra.Command{
		Use:   "add-principal NAME",
		Short: "Add somebody who may call, and print the token, which is shown only now",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := p.people()
			if err != nil {
				return err
			}
			n, err := wanted.read()
			if err != nil {
				return err
			}
			who := auth.Principal{Name: args[0], Kind: writ.PrincipalKind(kind)}
			for _, r := range roles {
				who.Roles = append(who.Roles, model.Role(r))
			}
			made, err := auth.Add(p.sys, path, who, n)
			if err != nil {
				return err
			}
			return p.print(madeToken{who.Name, who.Kind, who.Roles, made.Token, made.ID, timeOf(made.ExpiresAt)})
		},
	}
	cmd.Flags().StringVar(&kind, "kind", string(writ.Human), "human or agent")
	cmd.Flags().StringSliceVar(&roles, "role", nil, "requester, approver, operator, auditor or admin; may be given again")
	wanted.flags(cmd)
	return cmd
}

func (p *program) removePrincipalCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove-principal NAME",
		Short: "Let somebody call no more, with none of the tokens",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := p.people()
			if err != nil {
				return err
			}
			gone, err := auth.Remove(path, args[0])
			if err != nil {
				return err
			}
			return p.print(struct {
				Name  string             `json:"name"`
				Kind  writ.PrincipalKind `json:"kind"`
				Roles []model.Role       `json:"roles"`
			}{gone.Name, gone.Kind, gone.Roles})
		},
	}
}

func (p *program) listPrincipalsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list-principals",
		Short: "Print who may call, and what is known of the tokens, as JSON",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := p.people()
			if err != nil {
				return err
			}
			all, err := p.principals(path)
			if err != nil {
				return err
			}
			return p.print(all)
		},
	}
}

func (p *program) principals(path string) ([]principal, error) {
	people, err := auth.Open(p.sys, path)
	if err != nil {
		return nil, err
	}
	list, err := people.List()
	used, now := auth.LastUsed(path), p.sys.Now()
	all := []principal{}
	for _, who := range list {
		one := principal{who.Name, who.Kind, who.Roles, nil}
		for _, t := range who.Tokens {
			one.Tokens = append(one.Tokens, token{
				t.ID(), t.Label, t.State(now), timeOf(t.CreatedAt), timeOf(t.ExpiresAt), timeOf(t.RevokedAt), used[t.ID()],
			})
		}
		all = append(all, one)
	}
	return all, err
}

func timeOf(t time.Time) writ.Time {
	if t.IsZero() {
		return writ.Time{}
	}
	return writ.At(t)
}

func (p *program) addTokenCommand() *cobra.Command {
	var wanted newToken
	cmd := &cobra.Command{
		Use:   "add-token NAME",
		Short: "Give somebody who may call another token, and print it, which is shown only now",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := p.people()
			if err != nil {
				return err
			}
			n, err := wanted.read()
			if err != nil {
				return err
			}
			made, err := auth.AddToken(p.sys, path, args[0], n)
			if err != nil {
				return err
			}
			return p.print(madeToken{Name: args[0], Token: made.Token, TokenID: made.ID, ExpiresAt: timeOf(made.ExpiresAt)})
		},
	}
	wanted.flags(cmd)
	return cmd
}

func (p *program) revokeTokenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke-token ID",
		Short: "End a token now and for ever",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := p.people()
			if err != nil {
				return err
			}
			name, err := auth.Revoke(p.sys, path, args[0])
			if err != nil {
				return err
			}
			return p.print(map[string]string{"name": name, "token_id": args[0]})
		},
	}
}

// newToken is how the flags of a command describe one.
type newToken struct{ label, expires string }

func (n *newToken) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.label, "label", "", "where the token is, or what for")
	cmd.Flags().StringVar(&n.expires, "expires", "", "when it ends: 30d, 12h or never (default 90d for an agent, 365d for a person)")
}

// maxTerm is the longest term that is not never.
const maxTerm = 10 * 365 * 24 * time.Hour

func (n *newToken) read() (auth.New, error) {
	out := auth.New{Label: n.label}
	var err error
	switch days, ok := strings.CutSuffix(n.expires, "d"); {
	case n.expires == "":
		return out, nil
	case n.expires == "never":
		out.Term = auth.Never
		return out, nil
	case ok:
		var whole int64
		whole, err = strconv.ParseInt(days, 10, 16)
		out.Term = time.Duration(whole) * 24 * time.Hour
	default:
		out.Term, err = time.ParseDuration(n.expires)
	}
	if err != nil || out.Term <= 0 || out.Term > maxTerm {
		return auth.New{}, fault.Wrap(fault.Invalid, err, "--expires is a number of days or hours, as 30d or 12h, up to ten years, or never.")
	}
	return out, nil
}

// soon is how long before its end a token is spoken of.
const soon = 7 * 24 * time.Hour

// examineTokens names the tokens that are in use and end soon, or have ended and
// left their principal with none.
func (p *program) examineTokens(path string) error {
	all, err := p.principals(path)
	if err != nil {
		return err
	}
	now := p.sys.Now()
	for _, who := range all {
		lasting, ending := false, token{}
		for _, t := range who.Tokens {
			switch {
			case t.State == auth.Revoked:
			case t.ExpiresAt.IsZero() || t.ExpiresAt.Sub(now) > soon:
				lasting = true
			default:
				ending = t
			}
		}
		if ending.ID != "" && !lasting {
			return fault.New(fault.Expired, "The token %s of %s ends on %s, and there is none that lasts longer. Run: writ tokens rotate %s", ending.ID, who.Name, ending.ExpiresAt, who.Name)
		}
	}
	return nil
}
