// Command demo walks one change from request to receipt and back again, with
// the real programs, against the fakes of a Proxmox VE, a NetBox and a Nginx
// Proxy Manager on this machine. It shows each command before it runs it, stops
// by itself, and exits non-zero if a promise was broken.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout))
}
