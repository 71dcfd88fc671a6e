// Command writ-gate is the process that decides: it plans, weighs and asks, and
// hands signed writs to the executor. It cannot act.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"writ/gate/internal/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(app.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
