package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"writ/api"
	"writ/fault"
)

func (p *program) actionsCommand() *cobra.Command {
	var source bool
	cmd := &cobra.Command{
		Use:   "actions [NAME]",
		Short: "List the actions that can be asked for, or describe one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				a, err := g.Action(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return p.showAction(a, source)
			}
			list, err := g.Actions(cmd.Context())
			if err != nil {
				return err
			}
			p.print(list, func() {
				p.table("ACTION\tCLASS\tWHAT", func(row func(...string)) {
					for _, a := range list.Actions {
						class := string(a.Class)
						if a.Forbidden != "" {
							class = "forbidden"
						}
						row(a.Name, class, a.Summary)
					}
				})
				p.say("\nDescribe one: writ actions NAME")
			})
			return nil
		},
		ValidArgsFunction: p.completeAction,
	}
	cmd.Flags().BoolVar(&source, "source", false, "print the definition itself")
	return cmd
}

// param is what is shown of one param's schema.
type param struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	Pattern     string `json:"pattern"`
	Enum        []any  `json:"enum"`
	Minimum     *int64 `json:"minimum"`
	Maximum     *int64 `json:"maximum"`
	MaxLength   *int64 `json:"maxLength"`
	Default     any    `json:"default"`
}

func (p *program) showAction(a api.Action, source bool) error {
	var schema struct {
		Properties map[string]param `json:"properties"`
		Required   []string         `json:"required"`
	}
	if err := json.Unmarshal(a.Params, &schema); err != nil {
		return fault.Wrap(fault.Internal, err, "The schema of %s cannot be read.", a.Name)
	}
	p.print(a, func() {
		if source {
			p.say("%s", strings.TrimRight(plain(a.Source), "\n"))
			return
		}
		p.say("%s  %s", p.bold(line(a.Name)), line(string(a.Class)))
		p.say("%s, on a system of the kind %s.", line(a.Summary), line(a.System))
		switch {
		case a.Forbidden != "":
			p.say("It is forbidden, also with an approval: %s", line(a.Forbidden))
		case a.FactsOf != "":
			p.say("It is a set of facts of %s.", line(a.FactsOf))
		case a.Irreversible != "":
			p.say("There is no way back: %s", line(a.Irreversible))
		}
		p.say("")
		example := ""
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			s := schema.Properties[name]
			must := "optional"
			if slices.Contains(schema.Required, name) {
				must = "required"
				example += " " + name + "=…"
			}
			p.say("  %-14s %s, %s%s", line(name), line(s.Type), must, line(s.bounds()))
			if s.Description != "" {
				p.say("  %-14s %s", "", line(s.Description))
			}
		}
		if a.FactsOf != "" {
			p.say("\nAsk for it: writ facts ENTITY")
		} else if a.Forbidden == "" {
			p.say("\nAsk for it: writ propose %s%s", line(a.Name), line(example))
		}
	})
	return nil
}

// bounds says in words what values a param takes.
func (s param) bounds() string {
	var text strings.Builder
	if len(s.Enum) > 0 {
		fmt.Fprintf(&text, ", one of %v", s.Enum)
	}
	if s.Minimum != nil && s.Maximum != nil {
		fmt.Fprintf(&text, ", %d to %d", *s.Minimum, *s.Maximum)
	}
	if s.MaxLength != nil {
		fmt.Fprintf(&text, ", at most %d characters", *s.MaxLength)
	}
	if s.Pattern != "" {
		text.WriteString(", like " + s.Pattern)
	}
	if s.Default != nil {
		fmt.Fprintf(&text, " (default %v)", s.Default)
	}
	return text.String()
}
