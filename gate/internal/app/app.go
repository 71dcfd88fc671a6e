// Package app is the program writ-gate: its commands, and how the gate is put
// together from its parts.
package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/spf13/cobra"

	"writ/api"
	"writ/fault"
	"writ/gate/internal/config"
	"writ/redact"
	"writ/sys"
)

// program is what the commands share.
type program struct {
	sys    sys.Sys
	stdout io.Writer
	dir    string
}

// Run runs the program and returns its exit status.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	// The gate holds no secret of a system, but people and agents paste theirs.
	hide := redact.New([]byte(sys.Real(nil).NewSecret(32)))
	log := redact.Whole(stderr, func() *redact.Redactor { return hide })
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(log, "writ-gate: panic: %v\n%s", p, debug.Stack())
			status = fault.Internal.Row().Exit
		}
	}()
	p := &program{sys: sys.Real(slog.New(slog.NewTextHandler(log, nil))), stdout: stdout}
	root := &cobra.Command{
		Use:   "writ-gate",
		Short: "The process that decides, and cannot act",
		Long: `The gate takes requests, plans and weighs them, asks people, and hands signed
writs to the executor. It holds no credential of any system.

Normally "writ init" and "writ up" call it for you.`,
		Version:           api.Version,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.PersistentFlags().StringVar(&p.dir, "dir", ".", "the gate's own directory")
	root.AddCommand(p.initCommand(), p.keyCommand(), p.runCommand(), p.rotateKeyCommand(), p.doctorCommand(), p.configCommand(), p.recoverCommand())
	root.AddCommand(p.principalCommands()...)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		text := fault.TextOf(err)
		code := fault.CodeOf(err)
		if code == fault.Internal { // cobra's own: a flag or a command that does not exist
			text, code = err.Error(), fault.Invalid
		}
		fmt.Fprintln(log, "writ-gate: "+text)
		return code.Row().Exit
	}
	return 0
}

func (p *program) print(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (p *program) configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	c.AddCommand(&cobra.Command{
		Use:   "check",
		Short: "Name everything that is wrong with gate.yaml",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := config.Load(p.dir)
			if err == nil {
				fmt.Fprintf(p.stdout, "%s is valid.\n", config.File)
			}
			return err
		},
	})
	return c
}
