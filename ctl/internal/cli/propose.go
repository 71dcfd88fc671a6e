package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"writ"
	"writ/api"
	"writ/client"
	"writ/fault"
)

func (p *program) proposeCommand() *cobra.Command {
	var proposal api.Proposal
	var system, file, key, risk, onFailure string
	var wait bool
	cmd := &cobra.Command{
		Use:   "propose ACTION [PARAM=VALUE…]",
		Short: "Ask for a change: it is planned, previewed and weighed, and nothing is written",
		Long: `Ask for a change. It is planned, previewed from the target's real state and
weighed; nothing is written. What only reads runs at once; everything else waits
for whom the policy names.

A VALUE is read as the action's schema says; lists and objects are JSON. Several
steps, or words that do not fit a line, come from a file (--file) in YAML or JSON:

  steps:
    - action_type: proxmox.set_lxc_description
      target_system: proxmox
      params: {node: pve, vmid: 121, description: web server}
  purpose: So that people find it.

The exit status is 4 while it waits for an approval, 0 when it is done, 3 when it
is denied.`,
		Example: `  writ propose mock.noop_change value=hello
  writ propose proxmox.set_lxc_description node=pve vmid=121 description="web server" --ticket CHG-7
  writ propose --file request.yaml --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if (file == "") == (len(args) == 0) {
				return fault.New(fault.Invalid, "Name either an action or a --file. See the actions: writ actions")
			}
			g, err := p.gate(asking)
			if err != nil {
				return err
			}
			if file != "" {
				if system != "" {
					return fault.New(fault.Invalid, "With --file, each step names its own target_system.")
				}
				err = p.readProposal(file, &proposal)
			} else {
				err = stepOf(ctx, g, args, system, &proposal)
			}
			if err != nil {
				return err
			}
			if risk != "" {
				proposal.DeclaredRisk = writ.Level(risk)
			}
			if onFailure != "" {
				proposal.OnFailure = writ.OnFailure(onFailure)
			}
			c, err := g.Propose(ctx, proposal, key)
			if err != nil {
				return err
			}
			return p.follow(ctx, g, c, wait)
		},
		ValidArgsFunction: p.completeAction,
	}
	f := cmd.Flags()
	f.StringVar(&system, "system", "", "system to act on (default: the one named like the action's kind)")
	f.StringVar(&file, "file", "", "read the request from a JSON or YAML file, or from standard input (-)")
	f.StringVar(&proposal.RequestedAction, "requested-action", "", "what is asked for, in your words")
	f.StringVar(&proposal.Purpose, "purpose", "", "why, in your words")
	f.StringVar(&proposal.RollbackPlan, "rollback-plan", "", "how to undo it, in your words")
	f.StringVar(&proposal.ChangeTicket, "ticket", "", "number of the change ticket")
	f.StringVar(&risk, "risk", "", "low, medium or high: can only make the assessment stricter")
	f.StringVar(&onFailure, "on-failure", "", "stop, or rollback: undo finished steps when a later one fails (default stop)")
	f.StringVar(&key, "key", "", "asked again with the same key, it is the same change")
	f.BoolVar(&wait, "wait", false, "wait until it has ended, also for people")
	return cmd
}

// follow waits until a change is decided and, if no person has to decide, has
// ended; with toEnd until it has ended in any case. Then it shows the change.
func (p *program) follow(ctx context.Context, g *client.Client, c api.Change, toEnd bool) error {
	heldUp := false
	c, err := p.await(ctx, g, c, func(before, now api.Change) bool {
		// What is approved begins at once, unless something is in the way.
		heldUp = before.State == "approved" && now.State == "approved"
		return now.Ended || !toEnd && (now.State == "awaiting_approval" || heldUp)
	})
	if err == nil && heldUp && !toEnd {
		// To try once more either works or tells what is in the way.
		var held error
		if _, held = g.Execute(ctx, c.ID); held == nil {
			return p.follow(ctx, g, c, true)
		}
		if c, err = g.Change(ctx, c.ID); err == nil && c.State != "approved" { // it began just now
			return p.follow(ctx, g, c, true)
		}
		if err == nil {
			p.print(c, func() { p.say("%s", line(c.Next)) })
			err = held
		}
	}
	if err != nil {
		return err
	}
	p.print(c, func() { p.showChange(c) })
	return exitFor(c.Code)
}

// stepOf makes a proposal of one step from ACTION PARAM=VALUE….
func stepOf(ctx context.Context, g *client.Client, args []string, system string, out *api.Proposal) error {
	action, err := g.Action(ctx, args[0])
	if err != nil {
		return err
	}
	var schema struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(action.Params, &schema); err != nil {
		return fault.Wrap(fault.Internal, err, "The schema of %s cannot be read.", args[0])
	}
	params := writ.Object{}
	for _, arg := range args[1:] {
		name, text, ok := strings.Cut(arg, "=")
		property, known := schema.Properties[name]
		_, twice := params[name]
		switch {
		case !ok || !known:
			return fault.New(fault.Invalid, "%q is not PARAM=VALUE with a param of %s. Its params are: %s", arg, args[0], strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", "))
		case twice:
			return fault.New(fault.Invalid, "The param %s is given twice.", name)
		}
		if params[name], err = valueOf(property.Type, text); err != nil {
			return fault.Wrap(fault.Invalid, err, "The param %s is of the type %s, and %q is not.", name, property.Type, text)
		}
	}
	out.Steps = []api.ProposedStep{{ActionType: args[0], TargetSystem: system, Params: params}}
	return nil
}

// valueOf reads a value as its schema says.
func valueOf(kind, text string) (any, error) {
	switch kind {
	case "integer":
		return strconv.ParseInt(text, 10, 64)
	case "boolean":
		return strconv.ParseBool(text)
	case "array", "object":
		return writ.Parse([]byte(text))
	}
	return text, nil
}

// noAlias refuses what stands for something else: it could grow beyond all bounds.
func noAlias(aliases, _ int) error {
	if aliases > 0 {
		return errors.New("aliases are not allowed; write the value out")
	}
	return nil
}

// readProposal reads a request file, strictly: what is not known is refused
// rather than left out.
func (p *program) readProposal(file string, out *api.Proposal) error {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(io.LimitReader(p.stdin, writ.MaxSize+1))
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "The request cannot be read: %v", err)
	}
	if !json.Valid(data) {
		var value any
		if err := yaml.Load(data, &value, yaml.WithPlugin(loaderlimits.New(loaderlimits.AliasFunc(noAlias)))); err != nil {
			return fault.Wrap(fault.Invalid, err, "The request is neither JSON nor YAML: %v", err)
		}
		if data, err = json.Marshal(value); err != nil {
			return fault.Wrap(fault.Invalid, err, "The request has a key that is no text.")
		}
	}
	if _, err := writ.Parse(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		return fault.Wrap(fault.Invalid, err, "The request is not as it must be: %v", err)
	}
	return nil
}

// completeAction completes names of actions, and params once one is named.
func (p *program) completeAction(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	g, err := p.gate(asking)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) == 0 {
		all, err := g.Actions(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, a := range all.Actions {
			names = append(names, line(a.Name)+"\t"+line(a.Summary))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	a, err := g.Action(cmd.Context(), args[0])
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err != nil || json.Unmarshal(a.Params, &schema) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		names = append(names, line(name)+"=")
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
