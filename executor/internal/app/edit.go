package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"writ"
	"writ/executor/internal/config"
	"writ/executor/internal/datadir"
	"writ/executor/internal/serve"
	"writ/fault"
)

// edit changes executor.yaml, one command at a time, and tells a running executor.
func edit(ctx context.Context, dir string, change func(*config.Config) error) error {
	syscall.Umask(0o077)
	c, err := config.Load(dir)
	if err != nil {
		return err
	}
	release, err := datadir.Lock(c.Dir, "edit.lock")
	if err != nil {
		return err
	}
	err = func() error {
		if c, err = config.Load(dir); err != nil { // it may have changed until we had the lock
			return err
		}
		if err := change(c); err != nil {
			return err
		}
		return c.Save()
	}()
	if err == nil {
		if _, err = tell(ctx, c, "/reload", nil); fault.ReasonOf(err) == notRunning {
			err = nil
		} else if err != nil {
			err = fault.Wrap(fault.CodeOf(err), err, "It is saved, but the running executor goes on as it was: %s", fault.TextOf(err))
		}
	}
	return errors.Join(err, release())
}

// notRunning is the reason of tell's error if there is no running executor.
const notRunning = "not_running"

// tell calls the running executor.
func tell(ctx context.Context, c *config.Config, path string, body []byte) (serve.Status, error) {
	var status serve.Status
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // an unlock may settle runs first
	defer cancel()
	method := http.MethodPost
	if path == "/status" {
		method = http.MethodGet
	}
	q, err := http.NewRequestWithContext(ctx, method, "http://executor"+path, bytes.NewReader(body))
	if err != nil {
		return status, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.Path(config.AdminSocket))
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	answer, err := client.Do(q)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return status, fault.New(fault.Unavailable, "The executor is not running. Run: writ-executor run --dir %s", c.Dir).Because(notRunning)
	}
	if err != nil {
		return status, fault.Wrap(fault.Unavailable, err, "The running executor does not answer.")
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return status, fault.Wrap(fault.Unavailable, err, "The running executor's answer broke off.")
	}
	if answer.StatusCode != http.StatusOK {
		var r writ.Refusal
		if err := json.Unmarshal(text, &r); err != nil || r.Code == "" {
			return status, fault.Wrap(fault.Unavailable, err, "The running executor answered with status %d.", answer.StatusCode)
		}
		return status, fault.New(r.Code, "%s", r.Text).Because(r.Reason)
	}
	if err := json.Unmarshal(text, &status); err != nil {
		return status, fault.Wrap(fault.Unavailable, err, "The running executor's answer cannot be read.")
	}
	return status, nil
}

// terminal returns standard input if a person sits there.
func terminal(cmd *cobra.Command) (*os.File, bool) {
	f, ok := cmd.InOrStdin().(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// askSecret asks without echo, or reads standard input when it is no terminal.
func askSecret(cmd *cobra.Command, prompt string) (string, error) {
	if f, ok := terminal(cmd); ok {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: ", prompt)
		text, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(cmd.ErrOrStderr())
		if err != nil {
			return "", fault.Wrap(fault.Invalid, err, "Nothing could be read from the terminal.")
		}
		return string(text), nil
	}
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 64<<10))
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "Standard input could not be read.")
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// ask asks one line on the terminal.
func ask(cmd *cobra.Command, in *bufio.Reader, prompt, fallback string) (string, error) {
	if fallback != "" {
		prompt += " [" + fallback + "]"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: ", prompt)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "Nothing could be read from the terminal.")
	}
	if line = strings.TrimSpace(line); line == "" {
		return fallback, nil
	}
	return line, nil
}
