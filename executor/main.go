// The program writ-executor acts: it takes signed writs, holds the credentials,
// and decides nothing.
package main

import (
	"context"
	"os"

	"writ/executor/internal/app"
)

func main() {
	os.Exit(app.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
