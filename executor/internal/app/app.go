// Package app is the program writ-executor: its commands, and how its parts are
// put together. It reads no environment; drivers.go lists what it can act on.
package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"writ/fault"
	"writ/redact"
)

// Run runs the program and returns its exit status.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	// What is said of a panic may quote anything.
	last := redact.Whole(stderr, func() *redact.Redactor { return new(redact.Redactor) })
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(last, "writ-executor: panic: %v\n%s", p, debug.Stack())
			status = fault.Internal.Row().Exit
		}
	}()
	root := &cobra.Command{
		Use:           "writ-executor",
		Short:         "The side of writ that acts: it holds the credentials and takes signed writs only",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	var dir string
	root.PersistentFlags().StringVar(&dir, "dir", "", "the data directory")
	if err := root.MarkPersistentFlagRequired("dir"); err != nil {
		panic(err) // the flag is defined one line above
	}
	root.AddCommand(
		initCommand(&dir),
		runCommand(&dir),
		rotateKeyCommand(&dir),
		setGateKeyCommand(&dir),
		addApproverCommand(&dir),
		removeApproverCommand(&dir),
		systemsCommand(&dir),
		vaultCommand(&dir),
		doctorCommand(&dir),
	)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := fault.CodeOf(err)
	text := fault.TextOf(err)
	if _, ok := asFault(err); !ok { // cobra's own: a wrong flag or command
		code, text = fault.Invalid, err.Error()
	}
	if text != "" {
		fmt.Fprintln(last, "writ-executor: "+text)
	}
	return code.Row().Exit
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
