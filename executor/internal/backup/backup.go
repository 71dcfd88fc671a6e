// Package backup keeps the state before a write: one file a step, written,
// synced, read again and compared before anything is sent. It refuses to work
// in a directory that others can enter, and never writes over a file.
package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"syscall"

	"writ"
	"writ/catalog"
	"writ/failpoint"
	"writ/fault"
)

// Store keeps the backups of one executor.
type Store struct{ dir, executor string }

// New returns a store of the executor's backups in dir. The directory is
// checked on every use.
func New(dir, executor string) *Store { return &Store{dir, executor} }

// Saved is a backup that was read again and found to be what was written.
type Saved struct {
	Reference string // backup:<executor>/<run>/<name>
	Digest    writ.Digest
	Checks    []writ.Check
}

// Seen is what was read, by the name of the observation.
type Seen = map[string]catalog.Seen

// state is how one observation stands in a backup.
type state struct {
	Found  bool   `json:"found"`
	Status int    `json:"status"`
	Data   any    `json:"data"`
	Text   string `json:"text"`
	ETag   string `json:"etag"`
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// Save writes what was seen before a step, named within its run, to a new file
// of mode 0600. Any doubt is an error with reason backup_refused; then nothing
// may be sent.
func (s *Store) Save(run, name string, seen Seen) (Saved, error) {
	content, err := encode(seen)
	if err != nil {
		return Saved{}, refuse(err, "What was read cannot be written as JSON.")
	}
	folder, err := s.open(run, true)
	if err != nil {
		return Saved{}, err
	}
	defer folder.Close()
	file, err := fileName(name)
	if err != nil {
		return Saved{}, err
	}
	if err := write(folder, file, content); err != nil {
		return Saved{}, refuse(err, "The backup %s/%s of %s could not be written. Check the free space and the owner of the directory.", run, file, s.dir)
	}
	failpoint.Reach(failpoint.BackupListed)
	digest := writ.DigestBytes(content)
	back, private, err := read(folder, file)
	if err != nil || len(back) != len(content) || writ.DigestBytes(back) != digest || !private {
		return Saved{}, refuse(err, "The backup %s/%s of %s does not read back as it was written.", run, file, s.dir)
	}
	failpoint.Reach(failpoint.BackupReadBack)
	return Saved{
		Reference: fmt.Sprintf("backup:%s/%s/%s", s.executor, run, name),
		Digest:    digest,
		Checks: []writ.Check{
			{Name: "backup_file_exists", Passed: true},
			{Name: "backup_file_nonempty", Passed: len(back) > 0},
			{Name: "backup_file_private", Passed: private},
		},
	}, nil
}

// Load returns a backup if its content has the digest.
func (s *Store) Load(run, name string, digest writ.Digest) (Seen, error) {
	folder, err := s.open(run, false)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	file, err := fileName(name)
	if err != nil {
		return nil, err
	}
	content, _, err := read(folder, file)
	if err != nil || writ.DigestBytes(content) != digest {
		return nil, refuse(err, "The backup %s/%s of %s is gone or was changed.", run, file, s.dir)
	}
	return decode(content)
}

// Check reports what keeps the directory from being used, nil if nothing does.
func (s *Store) Check() error {
	root, err := s.root()
	if err != nil {
		return err
	}
	return root.Close()
}

// root opens the directory, which must be ours alone and no link.
func (s *Store) root() (*os.Root, error) {
	before, err := os.Lstat(s.dir)
	if err != nil {
		return nil, refuse(err, "The directory for backups cannot be read. Run: install -d -m 700 %s", s.dir)
	}
	if !before.IsDir() {
		return nil, refuse(nil, "%s must be a directory, not a link or a file. Run: rm %s && install -d -m 700 %s", s.dir, s.dir, s.dir)
	}
	if !ours(before) {
		return nil, refuse(nil, "The directory for backups belongs to another user. Run: chown %d %s", os.Geteuid(), s.dir)
	}
	if before.Mode().Perm() != 0o700 {
		return nil, refuse(nil, "The directory for backups must be its owner's, and nobody else's. Run: chmod 700 %s", s.dir)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, refuse(err, "The directory for backups, %s, cannot be opened. Check the disk.", s.dir)
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(before, opened) || opened.Mode() != before.Mode() {
		return nil, errors.Join(refuse(err, "The directory %s was changed while it was opened.", s.dir), root.Close())
	}
	return root, nil
}

// open opens the directory of a run.
func (s *Store) open(run string, create bool) (*os.Root, error) {
	if !plainName.MatchString(run) {
		return nil, refuse(nil, "The name of the run is not fit for a directory.")
	}
	root, err := s.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if create {
		if err := makeFolder(root, run); err != nil {
			return nil, refuse(err, "No directory for the run could be made in %s. Check the free space.", s.dir)
		}
	}
	info, err := root.Lstat(run)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 || !ours(info) {
		return nil, refuse(err, "The directory %s/%s is missing, or others may enter it. Run: chmod 700 %s/%s", s.dir, run, s.dir, run)
	}
	folder, err := root.OpenRoot(run)
	if err != nil {
		return nil, refuse(err, "The directory %s/%s cannot be opened.", s.dir, run)
	}
	return folder, nil
}

func makeFolder(root *os.Root, run string) error {
	err := root.Mkdir(run, 0o700)
	if os.IsExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncFolder(root)
}

func syncFolder(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func fileName(name string) (string, error) {
	if !plainName.MatchString(name) {
		return "", refuse(nil, "The name of the step is not fit for a file.")
	}
	return name + ".json", nil
}

func write(folder *os.Root, file string, content []byte) error {
	f, err := folder.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		f.Close()
		return err
	}
	failpoint.Reach(failpoint.BackupWritten)
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	failpoint.Reach(failpoint.BackupSynced)
	if err := f.Close(); err != nil {
		return err
	}
	return syncFolder(folder)
}

// read returns a file's content and whether it is a plain file that is ours alone.
func read(folder *os.Root, file string) (content []byte, private bool, err error) {
	f, err := folder.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, false, err
	}
	content, err = io.ReadAll(f)
	links := info.Sys().(*syscall.Stat_t).Nlink
	return content, info.Mode().Perm() == 0o600 && ours(info) && links == 1, err
}

func ours(info fs.FileInfo) bool { return int(info.Sys().(*syscall.Stat_t).Uid) == os.Geteuid() }

// encode writes with sorted names, so that the same state has the same digest.
func encode(seen Seen) ([]byte, error) {
	states := map[string]state{}
	for name, s := range seen {
		states[name] = state(s)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(states)
	return b.Bytes(), err
}

func decode(content []byte) (Seen, error) {
	var states map[string]state
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err := d.Decode(&states); err != nil {
		return nil, refuse(err, "The backup is not JSON.")
	}
	seen := Seen{}
	for name, s := range states {
		s.Data = Numbers(s.Data)
		seen[name] = catalog.Seen(s)
	}
	return seen, nil
}

// Numbers turns the json.Numbers in a value into int64, or float64 if they are
// not whole, as drivers give them.
func Numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case []any:
		for i := range v {
			v[i] = Numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = Numbers(v[k])
		}
	}
	return v
}

func refuse(cause error, format string, args ...any) *fault.Error {
	return fault.Wrap(fault.Refused, cause, format, args...).Because("backup_refused")
}
