package cli

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"writ/fault"
)

func (p *program) principalsCommand() *cobra.Command {
	return noun("principals", "Say who may call the gate, and as what", p.addPrincipalCommand(), p.listPrincipalsCommand(), p.removePrincipalCommand())
}

func (p *program) addPrincipalCommand() *cobra.Command {
	var kind string
	var roles []string
	var t newToken
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "Add somebody, and store the token in tokens/NAME.token",
		Long: `Add somebody who may call the gate. The roles: a requester asks, an approver decides,
an operator carries out what was held up and asks for rollbacks, an auditor reads
everything, an admin does all of it. An agent can be neither approver nor admin.`,
		Example: `  writ principals add opencode --kind agent --role requester
  writ principals add ana --role approver --role auditor`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := p.home()
			if err != nil {
				return err
			}
			path, err := p.addPrincipal(cmd, h, args[0], kind, roles, t.args()...)
			if err != nil {
				return err
			}
			p.print(map[string]string{"name": args[0], "token_file": path}, func() {
				p.say("%s may call now. The token is in %s: hand it over, or use it here with --as %s.", args[0], path, args[0])
			})
			return nil
		},
	}
	add.Flags().StringVar(&kind, "kind", "human", "human or agent")
	add.Flags().StringSliceVar(&roles, "role", nil, "requester, approver, operator, auditor or admin; may be given again")
	t.flags(add)
	_ = add.MarkFlagRequired("role") // fails only for a flag that does not exist
	return add
}

func (p *program) listPrincipalsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List who may call, and as what",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := p.principals(cmd)
			if err != nil {
				return err
			}
			p.print(all, func() {
				now := p.sys.Now()
				p.table("NAME\tKIND\tROLES\tTOKENS\tUSED", func(row func(...string)) {
					for _, who := range all {
						active, used := 0, tokenInfo{}
						for _, t := range who.Tokens {
							if t.State == "active" {
								active++
							}
							if t.LastUsedAt.After(used.LastUsedAt.Time) {
								used = t
							}
						}
						row(who.Name, who.Kind, strings.Join(who.Roles, " "), strconv.Itoa(active), ago(now, used.LastUsedAt))
					}
				})
			})
			return nil
		},
	}
}

func (p *program) removePrincipalCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Let somebody call no more, with none of the tokens",
		Long: `Take somebody out: no token of theirs is taken from the next call on, and approvals in
their name count no more at the executor. What they asked for and decided stays in the
audit under their name: think before you give it to somebody else.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := p.home()
			if err != nil {
				return err
			}
			var gone struct {
				Roles []string `json:"roles"`
			}
			if err := p.ask(cmd.Context(), h, &gone, gateProgram, "remove-principal", args[0]); err != nil {
				return err
			}
			if decides(gone.Roles) {
				if err := p.ask(cmd.Context(), h, nil, executorProgram, "remove-approver", args[0]); err != nil {
					return err
				}
			}
			if err := os.Remove(h.tokenFile(args[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fault.Wrap(fault.Unavailable, err, "%s may not call any more, but the token, which is good for nothing now, could not be deleted: %s", args[0], h.tokenFile(args[0]))
			}
			p.print(map[string]string{"name": args[0]}, func() {
				p.say("%s may not call any more, and tokens/%s.token is deleted.", args[0], args[0])
			})
			return nil
		},
	}
}

func decides(roles []string) bool {
	return slices.Contains(roles, "approver") || slices.Contains(roles, "admin")
}

// addPrincipal makes a principal known to the gate and, if it decides, to the
// executor, which takes nobody's word for who may. It returns the token's file.
func (p *program) addPrincipal(cmd *cobra.Command, h *home, name, kind string, roles []string, more ...string) (string, error) {
	if _, err := os.Lstat(h.tokenFile(name)); err == nil {
		return "", fault.New(fault.Conflict, "There is already a file %s. Nothing was overwritten.", h.tokenFile(name))
	}
	args := append([]string{"add-principal", name, "--kind", kind}, more...)
	for _, r := range roles {
		args = append(args, "--role", r)
	}
	var made struct {
		Token string `json:"token"`
	}
	if err := p.ask(cmd.Context(), h, &made, gateProgram, args...); err != nil {
		return "", err
	}
	if err := create(h.tokenFile(name), made.Token+"\n"); err != nil {
		return "", err
	}
	if decides(roles) {
		return h.tokenFile(name), p.ask(cmd.Context(), h, nil, executorProgram, "add-approver", name)
	}
	return h.tokenFile(name), nil
}
