package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"writ/fault"
	"writ/shell"
)

func (p *program) commandsCommand() *cobra.Command {
	var extra []string
	var source bool
	cmd := &cobra.Command{
		Use:   "commands [NAME]",
		Short: "List the shell commands that are known, or say what is known of one and why",
		Long: `List the shell commands that classify knows, or show what is known of one: where it was
checked, what it does by itself, its options and verbs, and the examples that hold the
knowledge to its word. What is not listed escalates. Needs no gate.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			k, err := knowledge(extra)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				i, ok := k.Command(args[0])
				if !ok {
					return fault.New(fault.NotFound, "Nothing is known of the command %q, so it is config_mutation at least. Say what it does in a file of your own, and name its directory with --knowledge.", args[0])
				}
				p.print(i, func() { p.showKnown(i, source) })
				return nil
			}
			list := []shell.Info{}
			for _, name := range k.Names() {
				if i, ok := k.Command(name); ok && i.Name == name {
					list = append(list, i)
				}
			}
			p.print(list, func() {
				p.table("COMMAND\tWHAT", func(row func(...string)) {
					for _, i := range list {
						also := ""
						if len(i.Aliases) > 0 {
							also = " (also " + strings.Join(i.Aliases, ", ") + ")"
						}
						row(i.Name, i.About+also)
					}
				})
				p.say("\nMore of one: writ commands NAME")
			})
			return nil
		},
	}
	cmd.Flags().BoolVar(&source, "source", false, "print the definition itself")
	addKnowledge(cmd, &extra)
	return cmd
}

func (p *program) showKnown(i shell.Info, source bool) {
	if source {
		p.say("# %s\n%s", line(i.File), strings.TrimRight(plain(i.Source), "\n"))
	} else {
		p.say("%s  %s", p.bold(line(i.Name)), line(i.About))
		p.known("Also", i.Aliases...)
		p.known("Checked in", i.Manual)
		p.known("File", i.File)
		var effects []string
		for _, e := range i.Effects {
			effects = append(effects, string(e))
		}
		p.known("By itself", effects...)
		p.known("Read-only", i.Hint)
		p.known("Options", i.Options...)
		p.known("Verbs", i.Verbs...)
		p.say("Examples")
		p.table("", func(row func(...string)) {
			for _, ex := range i.Examples {
				class := string(ex.Class)
				if ex.NeedsLimit {
					class += ", with a limit"
				}
				row("  "+class, ex.Command)
			}
		})
	}
	for _, more := range i.More {
		p.say("\nBesides, and the strictest holds:")
		p.showKnown(more, source)
	}
}

// known prints what there is under a heading, as lines of readable length.
func (p *program) known(heading string, list ...string) {
	sep := ", "
	if heading == "Options" {
		sep = " "
	}
	var text string
	flush := func() {
		if text != "" {
			p.say("%-11s %s", heading, line(strings.TrimRight(text, " ")))
		}
		heading, text = "", ""
	}
	for n, item := range list {
		if n+1 < len(list) {
			item += sep
		}
		if text != "" && len(text)+len(item) > 88 {
			flush()
		}
		text += item
	}
	flush()
}
