// Package file is the driver for a tree of text files below one directory that
// the operator allows, such as the pages of a site.
//
// Nothing outside the tree is read or written, whatever is put into the tree:
// all goes through os.Root, and through the open parent directory of a file that
// is written, so that a directory which is swapped for a link in between changes
// nothing. A file with a second name (a hard link) may live outside as well, so
// it is refused, and so is everything that is no regular file.
//
//	read    path                             Text, Data {content, sha256, size}, ETag = sha256
//	list    path, query {suffix, contains}   Data [{path, size, dir}], the whole subtree in order
//	write   path, text, if_match             if_match is the sha256 of what is replaced; "" is a new file
//	remove  path, if_match                   if_match is the sha256 of what is removed
//
// Content is UTF-8 of at most 1 MiB. A new file appears whole or not at all, and
// never in place of another. Parent directories are made; they stay if the write
// then fails. An if_match is looked at just before the write: it holds against
// other calls of the same target, and against others up to that moment.
package file

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"

	"writ"
	"writ/catalog"
	"writ/connector"
	"writ/fault"
	"writ/sys"
)

// New returns the driver of kind "file".
func New(s sys.Sys) connector.Driver { return driver{s} }

type driver struct{ sys sys.Sys }

func (driver) Kind() string { return "file" }

func (driver) Needs() []connector.Need {
	return []connector.Need{
		{Name: "root", Prompt: "Directory that may be changed, an absolute path"},
		{Name: "mode", Prompt: "Mode of new files", Default: "0644", Option: true},
	}
}

func (driver) Verbs() map[string]bool {
	return map[string]bool{"read": false, "list": false, "write": true, "remove": true}
}

func (driver) Authenticate(connector.System, connector.Secrets, http.RoundTripper) http.RoundTripper {
	return nil
}

func (d driver) Open(s connector.System) (connector.Target, error) {
	t := &target{sys: d.sys, dir: s.Options["root"], mode: 0o644}
	for name, value := range s.Options {
		switch name {
		case "root":
		case "mode":
			mode, err := strconv.ParseUint(value, 8, 32)
			if err != nil || mode&0o600 != 0o600 || mode > 0o777 {
				return nil, fault.New(fault.Invalid, "Option mode of system %q is %q; use the mode of a file its owner can read and write, such as 0644.", s.Name, value)
			}
			t.mode = fs.FileMode(mode)
		default:
			return nil, fault.New(fault.Invalid, "System %q has an option %q that kind file does not know; take it out of executor.yaml.", s.Name, name)
		}
	}
	if s.BaseURL != "" || len(s.Endpoints) > 0 {
		return nil, fault.New(fault.Invalid, "System %q is of kind file, which has no addresses; take them out of executor.yaml.", s.Name)
	}
	if !filepath.IsAbs(t.dir) || filepath.Clean(t.dir) == "/" {
		return nil, fault.New(fault.Invalid, "Option root of system %q is %q; give the absolute path of a directory, not the root of the machine.", s.Name, t.dir)
	}
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The directory %s of system %q cannot be opened; see that it exists and that the executor may enter it.", t.dir, s.Name)
	}
	t.root = root
	return t, nil
}

type target struct {
	sys  sys.Sys
	dir  string
	root *os.Root
	mode fs.FileMode
	mu   sync.RWMutex // so that nothing of ours comes between the look at a file and its change
}

// Do makes one call.
func (t *target) Do(ctx context.Context, c catalog.Call) (catalog.Seen, error) {
	if err := check(ctx, c); err != nil {
		return catalog.Seen{}, err
	}
	var (
		seen catalog.Seen
		err  error
	)
	switch c.Verb {
	case "read":
		t.mu.RLock()
		defer t.mu.RUnlock()
		seen, err = t.read(c.Path)
	case "list":
		t.mu.RLock()
		defer t.mu.RUnlock()
		seen, err = t.list(ctx, c)
	case "write":
		t.mu.Lock()
		defer t.mu.Unlock()
		seen, err = t.write(c)
	case "remove":
		t.mu.Lock()
		defer t.mu.Unlock()
		seen, err = t.remove(c)
	}
	if err == nil {
		return seen, nil
	}
	failed := explain(c, err)
	if c.AbsentOK && failed.Reason == "not_found" {
		return catalog.Seen{}, nil
	}
	return catalog.Seen{}, failed
}

// check refuses a call that the driver does not know, or that says more than it
// will heed.
func check(ctx context.Context, c catalog.Call) error {
	bad := func(text string) error {
		return connector.Errorf(writ.NotExecuted, "bad_call", 0, "%s Correct the action.", text)
	}
	writes, known := driver{}.Verbs()[c.Verb]
	switch {
	case !known:
		return connector.Errorf(writ.NotExecuted, "unknown_verb", 0, "Kind file has no verb %q; use read, list, write or remove.", c.Verb)
	case ctx.Err() != nil:
		return connector.Errorf(writ.NotExecuted, "canceled", 0, "The call was cancelled before it began.")
	case c.At != "" || c.Host != "" || c.Form != nil || c.JSON != nil:
		return bad("A file has no endpoint, no host, no form and no json.")
	case (c.Text != nil) != (c.Verb == "write"):
		return bad("A write needs text, and nothing else takes it.")
	case c.Verb == "remove" && c.IfMatch == "":
		return bad("A remove needs if_match, the sha256 of what is removed.")
	case !writes && c.IfMatch != "":
		return bad("Only a write or a remove has if_match.")
	case c.Verb == "write" && (len(*c.Text) > maxContent || !utf8.ValidString(*c.Text)):
		return bad("Content is UTF-8 of at most 1 MiB.")
	}
	for name := range c.Query {
		if c.Verb != "list" || name != "suffix" && name != "contains" {
			return bad("Only list has a query, of suffix and contains.")
		}
	}
	if c.Path == "." && c.Verb == "list" {
		return nil
	}
	for _, name := range strings.Split(c.Path, "/") {
		if name == "" || name == "." || name == ".." || strings.HasPrefix(name, temporary) ||
			!utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return connector.Errorf(writ.NotExecuted, "bad_call", 0, "%q is no path of names below the root of the system. Correct the action.", c.Path)
		}
	}
	return nil
}

// explain makes an error of the file system a sentence. Unless it is an *Error
// already, nothing has been changed.
func explain(c catalog.Call, err error) *connector.Error {
	if known, ok := errors.AsType[*connector.Error](err); ok {
		return known
	}
	reason, what := "unusable_path", "leads out of the root of the system, or is not what it has to be"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason, what = "not_found", "does not exist"
	case errors.Is(err, fs.ErrExist):
		reason, what = "already_exists", "exists already, and only its sha256 as if_match would replace it"
	case errors.Is(err, fs.ErrPermission):
		reason, what = "permission_denied", "may not be used by the executor"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		reason, what = "no_space", "does not fit on the disk"
	case errors.Is(err, syscall.EROFS):
		reason, what = "read_only", "is on a file system that is mounted read-only"
	}
	return &connector.Error{Outcome: writ.NotExecuted, Reason: reason, Cause: err,
		Text: strconv.Quote(c.Path) + " " + what + "; nothing was changed."}
}

// Check looks at the root.
func (t *target) Check(context.Context) ([]string, error) {
	var wrong []string
	if _, err := fs.ReadDir(t.root.FS(), "."); err != nil {
		wrong = append(wrong, "The executor may not list "+t.dir+"; give its user the right to read and enter it.")
	}
	if err := syscall.Access(t.dir, 2); err != nil { // W_OK
		wrong = append(wrong, "The executor may not write in "+t.dir+"; give its user that right, or leave the system to reads.")
	}
	return wrong, nil
}

// Close closes the root.
func (t *target) Close() error { return t.root.Close() }
