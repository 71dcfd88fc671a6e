// Command writ asks the gate for changes, shows them, and lets people decide.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"writ/ctl/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
