package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"writ/catalog"
	"writ/fault"
)

func (p *program) initCommand() *cobra.Command {
	var agent, approver string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a new home: configuration, keys, two tokens, a starting policy",
		Long: `Make all that gate and executor need in a directory: configuration, keys, a token for
an agent, a token for a person who approves, a starting policy, a copy of the actions,
and a system in memory to try things on. What exists is not overwritten. Nothing is
started and no system is reached.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := cmp.Or(p.dir, ".")
			if len(args) == 1 {
				dir = args[0]
			}
			dir, err := filepath.Abs(dir)
			if err != nil {
				return fault.Wrap(fault.Invalid, err, "The directory cannot be found.")
			}
			if approver == "" {
				approver = "approver"
				if name := strings.ToLower(p.env["USER"]); nameForm.MatchString(name) && name != agent {
					approver = name
				}
			}
			if !nameForm.MatchString(agent) || !nameForm.MatchString(approver) || agent == approver {
				return fault.New(fault.Invalid, "--agent and --approver are two different names of a lower-case letter, then a-z 0-9 . _ -")
			}
			h := &home{dir: dir, Gate: "run/gate.sock", AskAs: agent, ApproveAs: approver}
			if err := p.initialise(cmd, h); err != nil {
				return err
			}
			p.print(map[string]string{"dir": dir, "agent": agent, "approver": approver}, func() { p.tellMade(h) })
			return nil
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "agent", "name of the agent that asks")
	cmd.Flags().StringVar(&approver, "approver", "", "name of the person who approves (default: you)")
	return cmd
}

// initialise makes the home, or leaves nothing behind.
func (p *program) initialise(cmd *cobra.Command, h *home) (err error) {
	ctx := cmd.Context()
	made := []string{homeFile, "gate", "executor", "catalog", "tokens", "run"}
	for _, name := range made {
		if _, err := os.Lstat(h.path(name)); !errors.Is(err, fs.ErrNotExist) {
			return fault.New(fault.Conflict, "There is a %s in %s already, and nothing is overwritten. Choose another directory: writ init DIR", name, h.dir)
		}
	}
	defer func() {
		if err != nil {
			for _, name := range made { // none of them was there before
				err = errors.Join(err, os.RemoveAll(h.path(name)))
			}
		}
	}()
	syscall.Umask(0o077)
	for _, dir := range []string{h.dir, h.path("tokens"), h.path("run"), h.path("catalog")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fault.Wrap(fault.Unavailable, err, "The directory %s cannot be made.", dir)
		}
	}
	if err := copyActions(h.path("catalog")); err != nil {
		return err
	}
	var gate, executor struct {
		Key string `json:"public_key"`
	}
	if err := p.ask(ctx, h, &gate, gateProgram, "key"); err != nil {
		return err
	}
	if err := p.ask(ctx, h, &executor, executorProgram, "init", "--name", "local", "--gate-key", gate.Key); err != nil {
		return err
	}
	if err := settle(h.path("executor", "executor.yaml"), map[string]string{"socket": "../run/executor.sock", "catalog": "../catalog"}); err != nil {
		return err
	}
	err = p.ask(ctx, h, nil, gateProgram, "init", "--socket", "../run/gate.sock", "--executor", "local",
		"--executor-socket", "../run/executor.sock", "--executor-key", executor.Key, "--catalog", "../catalog")
	if err != nil {
		return err
	}
	if err := p.ask(ctx, h, nil, executorProgram, "systems", "add", "mock", "--environment", "lab"); err != nil {
		return err
	}
	if _, err := p.addPrincipal(cmd, h, h.AskAs, "agent", []string{"requester"}); err != nil {
		return err
	}
	if _, err := p.addPrincipal(cmd, h, h.ApproveAs, "human", []string{"approver", "operator"}); err != nil {
		return err
	}
	return create(h.path(homeFile), strings.NewReplacer("{{agent}}", h.AskAs, "{{approver}}", h.ApproveAs).Replace(homeText))
}

// copyActions makes the operator's own copy of the shipped actions.
func copyActions(dir string) error {
	err := os.CopyFS(dir, catalog.Builtin())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "README"), []byte("An action is one YAML file below this directory. After a change: writ catalog check, then start writ up again.\n"), 0o600)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "The actions cannot be copied to %s.", dir)
	}
	return nil
}

// settle sets members of a YAML file.
func settle(path string, members map[string]string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be read.", path)
	}
	var all map[string]any
	if err := yaml.Load(data, &all); err != nil {
		return fault.Wrap(fault.Invalid, err, "%s is not YAML.", path)
	}
	for name, value := range members {
		all[name] = value
	}
	if data, err = yaml.Dump(all); err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be written.", path)
	}
	return nil
}

// firstChange is a change that works in every new home.
const firstChange = "writ propose mock.noop_change value=hello"

func (p *program) tellMade(h *home) {
	p.say("Made in %s, readable by you alone:", h.dir)
	p.say("")
	p.table("", func(row func(...string)) {
		row("  writ.yaml", "where the gate is, and whose token is used")
		row("  gate/", "the process that decides: gate.yaml, policy.yaml, principals.yaml, its key")
		row("  executor/", "the process that acts: executor.yaml, the vault, backups, its key")
		row("  catalog/", "the actions that can be asked for, and settings.yaml: what they may touch")
		row("  tokens/"+h.AskAs+".token", "for the agent: asks, can never approve")
		row("  tokens/"+h.ApproveAs+".token", "for you: approves")
	})
	p.say("")
	where := ""
	if here, err := os.Getwd(); err != nil || here != h.dir {
		where = "cd " + h.dir + " && "
	}
	p.say("Now start both processes:           %swrit up", where)
	p.say("Then, in another terminal, ask:     %s%s", where, firstChange)
	p.say("Connect a real system:              writ systems add proxmox   (or netbox, npm, http, file)")
}
