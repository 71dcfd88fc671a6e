// Package cli is the command writ: one verb a file. It asks over the API like
// everybody else; only init, up, doctor, systems, vault and principals run the
// other two programs, each in its own directory.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"writ/api"
	"writ/client"
	"writ/fault"
	"writ/sys"
)

// program is what all verbs share.
type program struct {
	sys    sys.Sys
	env    map[string]string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	dir    string // --dir
	as     string // --as
	asJSON bool   // --json
}

// Run runs the command and returns its exit status: 0, or that of the code of
// what went wrong or of what became of the change.
func Run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{sys: sys.Real(slog.New(slog.DiscardHandler)), env: map[string]string{}, stdin: stdin, stdout: stdout, stderr: stderr}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		p.env[name] = value
	}
	root := p.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return p.status(cmd, err)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "writ",
		Short: "No write without a writ",
		Long: `writ lets an agent, or a person in a hurry, ask for changes to infrastructure.
Nothing changes until the change was planned, previewed and weighed, and a human
has approved exactly what was shown.

To begin, in an empty directory:   writ init   then   writ up`,
		Version:          api.Version,
		SilenceErrors:    true,
		SilenceUsage:     true,
		TraverseChildren: true,
		RunE:             belowIt,

		SuggestionsMinimumDistance: 2,
	}
	f := root.PersistentFlags()
	f.StringVar(&p.dir, "dir", "", "directory of writ.yaml (default $WRIT_DIR, else the nearest above, else /etc/writ)")
	f.StringVar(&p.as, "as", "", "who asks: the name of a token (default: see writ.yaml)")
	f.BoolVar(&p.asJSON, "json", false, "print JSON")
	root.AddGroup(
		&cobra.Group{ID: groupAsk, Title: "Ask"},
		&cobra.Group{ID: groupDecide, Title: "Decide"},
		&cobra.Group{ID: groupLook, Title: "Look"},
		&cobra.Group{ID: groupOperate, Title: "Operate"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
		}
		root.AddCommand(commands...)
	}
	add(groupAsk, p.proposeCommand(), p.waitCommand(), p.cancelCommand(), p.executeCommand(), p.rollbackCommand(), p.mcpCommand(), p.connectCommand())
	add(groupDecide, p.approveCommand(), p.rejectCommand(), p.haltCommand(), p.liftCommand(), p.reconcileCommand())
	add(groupLook, p.listCommand(), p.showCommand(), p.artifactCommand(), p.explainCommand(), p.evidenceCommand(), p.factsCommand(), p.auditCommand(), p.locksCommand(), p.haltsCommand(),
		p.actionsCommand(), p.policyCommand(), p.classifyCommand(), p.commandsCommand())
	add(groupOperate, p.initCommand(), p.upCommand(), p.doctorCommand(), p.recoverCommand(), p.systemsCommand(), p.vaultCommand(),
		p.principalsCommand(), p.tokensCommand(), p.catalogCommand(), p.versionCommand())
	root.SetHelpCommandGroupID(groupOperate)
	root.SetCompletionCommandGroupID(groupOperate)
	sayUsage(root)
	return root
}

// sayUsage answers a wrong number of arguments with how the command is used.
func sayUsage(cmd *cobra.Command) {
	if fits := cmd.Args; fits != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			switch {
			case fits(cmd, args) == nil:
				return nil
			case cmd.HasSubCommands() && len(args) > 0:
				return belowIt(cmd, args)
			}
			return fault.New(fault.Invalid, "The arguments do not fit. It is used like this: %s", cmd.UseLine())
		}
	}
	for _, c := range cmd.Commands() {
		sayUsage(c)
	}
}

// The groups of the help text.
const (
	groupAsk     = "ask"
	groupDecide  = "decide"
	groupLook    = "look"
	groupOperate = "operate"
)

// noun is a command that has only commands below it.
func noun(use, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, RunE: belowIt, SuggestionsMinimumDistance: 2}
	cmd.AddCommand(below...)
	return cmd
}

// belowIt answers for a command that only has commands below it.
func belowIt(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	text := fmt.Sprintf("There is no command %q below %s.", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += " Is it " + strings.Join(near, ", or ") + "?"
	}
	return fault.New(fault.Invalid, "%s", text)
}

// status tells what went wrong in cmd and returns the exit status.
func (p *program) status(cmd *cobra.Command, err error) int {
	var ended exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return int(ended)
	}
	e := &fault.Error{Code: fault.CodeOf(err), Reason: fault.ReasonOf(err), Text: fault.TextOf(err)}
	var ours *fault.Error
	if !errors.As(err, &ours) && e.Code == fault.Internal {
		// It comes from the flags and arguments.
		e.Code, e.Text = fault.Invalid, fmt.Sprintf("%v\nUsage: %s", err, cmd.UseLine())
	}
	if p.asJSON {
		row := e.Code.Row()
		p.printTo(p.stderr, api.Problem{Type: "urn:writ:problem:" + string(row.Code), Title: row.Title, Status: row.HTTP, Code: e.Code, Reason: e.Reason, Detail: e.Text})
	} else {
		fmt.Fprintf(p.stderr, "writ: %s\n", plain(e.Text))
	}
	return e.Code.Row().Exit
}

// exit is an exit status whose reason was told already.
type exit int

func (exit) Error() string { return "the reason was told" }

// exitFor returns the error that makes the exit status of a code; "" is success.
func exitFor(code fault.Code) error {
	if code == "" {
		return nil
	}
	return exit(code.Row().Exit)
}

// print shows an answer as JSON if that is asked for, else as text does.
func (p *program) print(answer any, text func()) {
	if p.asJSON {
		p.printTo(p.stdout, answer)
		return
	}
	text()
}

func (p *program) printTo(w io.Writer, v any) {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v)                                 // a Builder takes everything
	_, _ = io.WriteString(w, jsonText(text.String())) // whoever closed the stream does not want it
}

// say prints one line; what comes from elsewhere has gone through plain.
func (p *program) say(format string, args ...any) { fmt.Fprintf(p.stdout, format+"\n", args...) }

// terminal reports whether a person sits at a stream.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// The three capacities in which a verb asks, if --as does not say who.
type capacity int

const (
	asking   capacity = iota // as ask_as of writ.yaml
	deciding                 // as approve_as
	looking                  // as approve_as, who sees everything; else as ask_as
)

// gate returns the client of the gate for a verb of the capacity.
func (p *program) gate(c capacity) (*client.Client, error) {
	h, err := p.home()
	if err != nil {
		return nil, err
	}
	name := p.as
	if name == "" {
		name = h.AskAs
		if c == deciding || c == looking && h.hasToken(h.ApproveAs) {
			name = h.ApproveAs
		}
	}
	token, err := h.token(name)
	if err != nil {
		return nil, err
	}
	return client.NewTrusting(h.gateAddress(), token, h.authority())
}
