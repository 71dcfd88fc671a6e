package file

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	"writ"
	"writ/catalog"
	"writ/connector"
)

// temporary begins the name of a file that is being written.
const temporary = ".writ-"

// write makes or replaces a file.
func (t *target) write(c catalog.Call) (catalog.Seen, error) {
	if dir := path.Dir(c.Path); c.IfMatch == "" && dir != "." {
		// A file in the way shows again when the parent is opened, as what it is.
		if err := t.root.MkdirAll(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return catalog.Seen{}, err
		}
	}
	parent, err := t.root.OpenRoot(path.Dir(c.Path))
	if err != nil {
		return catalog.Seen{}, err
	}
	defer parent.Close()
	base := path.Base(c.Path)
	var before fs.FileInfo
	if c.IfMatch != "" {
		if before, err = parent.Lstat(base); err != nil {
			return catalog.Seen{}, err
		}
	}
	name := temporary + t.sys.NewSecret(8)
	if err := t.fill(parent, name, *c.Text, before); err != nil {
		return catalog.Seen{}, err
	}
	if c.IfMatch == "" {
		err = parent.Link(name, base) // fails if there is something, whoever put it there meanwhile
	} else if err = unchanged(parent, base, c.IfMatch); err == nil {
		err = parent.Rename(name, base)
	}
	parent.Remove(name) // there is nothing to remove after a rename
	if err != nil {
		return catalog.Seen{}, err
	}
	sum := digest([]byte(*c.Text))
	return catalog.Seen{Found: true, ETag: sum, Data: map[string]any{"sha256": sum, "size": int64(len(*c.Text))}}, kept(parent, c.Path)
}

// fill writes a new file, to the disk. It gets the mode and the owner of the
// file that it will replace, if there is one.
func (t *target) fill(parent *os.Root, name, text string, before fs.FileInfo) (err error) {
	f, err := parent.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			parent.Remove(name)
		}
	}()
	mode := t.mode
	if before != nil {
		mode = before.Mode().Perm()
		if s, ok := before.Sys().(*syscall.Stat_t); ok {
			if err := f.Chown(int(s.Uid), int(s.Gid)); err != nil {
				return err
			}
		}
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Sync()
}

// remove removes a file that is still what it is said to be.
func (t *target) remove(c catalog.Call) (catalog.Seen, error) {
	parent, err := t.root.OpenRoot(path.Dir(c.Path))
	if err != nil {
		return catalog.Seen{}, err
	}
	defer parent.Close()
	base := path.Base(c.Path)
	if err := unchanged(parent, base, c.IfMatch); err != nil {
		return catalog.Seen{}, err
	}
	if err := parent.Remove(base); err != nil {
		return catalog.Seen{}, err
	}
	return catalog.Seen{Found: true}, kept(parent, c.Path)
}

// unchanged checks that a name is an ordinary file itself, no link to one, with
// that content.
func unchanged(parent *os.Root, name, sum string) error {
	info, err := parent.Lstat(name)
	if err != nil {
		return err
	}
	if !regular(info) {
		return irregular(name)
	}
	b, err := content(parent, name)
	if err != nil {
		return err
	}
	if digest(b) != sum {
		return connector.Errorf(writ.NotExecuted, "precondition_failed", 0, "%q is no longer what it was; nothing was changed.", name)
	}
	return nil
}

// kept puts a change of a directory on the disk. The change is made already, so
// an error leaves it in doubt.
func kept(parent *os.Root, name string) error {
	d, err := parent.Open(".")
	if err == nil {
		err = d.Sync()
		d.Close()
	}
	if err != nil {
		return &connector.Error{Outcome: writ.Unknown, Reason: "not_synced", Cause: err,
			Text: "The change of " + name + " was made, but whether it will outlive a crash of the machine is not known; look at the file."}
	}
	return nil
}
