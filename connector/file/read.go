package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"writ"
	"writ/catalog"
	"writ/connector"
)

const (
	maxContent = 1 << 20 // bytes of one file
	maxEntries = 10_000  // of one list, those left out included
)

// regular says whether a file is an ordinary one with one name.
func regular(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && s.Nlink == 1
}

func irregular(name string) error {
	return connector.Errorf(writ.NotExecuted, "irregular_file", 0, "%q is not an ordinary file with one name: it is a link, "+
		"a directory or a device, or has a second name, which an interrupted write may have left beside it as %s…; nothing was changed.", name, temporary)
}

// content reads a file below root. It is looked at before it is opened, since to
// open a device can have an effect, and after, since it may have been swapped.
func content(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !regular(info) {
		return nil, irregular(name)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold us
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if !regular(info) {
		return nil, irregular(name)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxContent+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxContent {
		return nil, connector.Errorf(writ.NotExecuted, "too_large", 0, "%q has more than 1 MiB; nothing was changed.", name)
	}
	return b, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (t *target) read(name string) (catalog.Seen, error) {
	b, err := content(t.root, name)
	if err != nil {
		return catalog.Seen{}, err
	}
	if !utf8.Valid(b) { // as text it would not come back as it was
		return catalog.Seen{}, connector.Errorf(writ.NotExecuted, "not_text", 0, "%q is not UTF-8 text; nothing was changed.", name)
	}
	sum, text := digest(b), string(b)
	return catalog.Seen{Found: true, Text: text, ETag: sum,
		Data: map[string]any{"content": text, "sha256": sum, "size": int64(len(b))}}, nil
}

// list walks a subtree. Names that begin with a dot are left out. With contains,
// a file that cannot be searched is an error, so that an empty list proves that
// the text is nowhere; without it, what is no ordinary file is left out.
func (t *target) list(ctx context.Context, c catalog.Call) (catalog.Seen, error) {
	if info, err := t.root.Stat(c.Path); err != nil {
		return catalog.Seen{}, err
	} else if !info.IsDir() {
		return catalog.Seen{}, connector.Errorf(writ.NotExecuted, "not_a_directory", 0, "%q is not a directory, so it cannot be listed.", c.Path)
	}
	contains, search := c.Query["contains"]
	found := []any{}
	entries := 0
	err := fs.WalkDir(t.root.FS(), c.Path, func(name string, d fs.DirEntry, err error) error {
		if entries++; entries > maxEntries {
			return connector.Errorf(writ.NotExecuted, "too_many", 0, "%q has more than %d files and directories; list a smaller part.", c.Path, maxEntries)
		}
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return connector.Errorf(writ.NotExecuted, "canceled", 0, "The list was cancelled.")
		case name == c.Path:
			return nil
		case strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(d.Name(), "."), d.IsDir() && search:
			return nil
		}
		entry, err := t.entry(name, d, c.Query["suffix"], search, []byte(contains))
		if entry != nil {
			found = append(found, entry)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) { // something in it, which does not make the whole absent
		err = &connector.Error{Outcome: writ.NotExecuted, Reason: "changing", Cause: err,
			Text: strconv.Quote(c.Path) + " was changed while it was listed; list it again."}
	}
	if err != nil {
		return catalog.Seen{}, err
	}
	return catalog.Seen{Found: true, Data: found}, nil
}

// entry is what list says of a name, nil if it does not match.
func (t *target) entry(name string, d fs.DirEntry, suffix string, search bool, contains []byte) (map[string]any, error) {
	matches := strings.HasSuffix(path.Base(name), suffix)
	if !search {
		info, err := t.root.Stat(name)
		if err != nil || !matches || !info.IsDir() && !regular(info) {
			return nil, nil
		}
		size := info.Size()
		if info.IsDir() {
			size = 0
		}
		return map[string]any{"path": name, "size": size, "dir": info.IsDir()}, nil
	}
	if !matches {
		if d.Type()&fs.ModeSymlink == 0 {
			return nil, nil
		}
		// A link to a directory hides a whole tree from the search.
		if info, err := t.root.Stat(name); err == nil && !info.IsDir() {
			return nil, nil
		}
		return nil, irregular(name)
	}
	b, err := content(t.root, name)
	if err != nil || !bytes.Contains(b, contains) {
		return nil, err
	}
	return map[string]any{"path": name, "size": int64(len(b)), "dir": false}, nil
}
