package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"writ/fault"
)

// copyTimeout bounds one POST of a checkpoint.
const copyTimeout = 5 * time.Second

// Copy is a second place for the newest checkpoint, out of reach of whoever
// may change the ledger. With neither Path nor URL there is none.
type Copy struct {
	Path string // a file that is replaced
	URL  string // answers a POST of the checkpoint with a status of 200 to 299
	// Required refuses whatever needs the audit while the copy cannot be made.
	Required bool
}

// Set reports whether there is a second place.
func (c Copy) Set() bool { return c.Path != "" || c.URL != "" }

// String names the place.
func (c Copy) String() string {
	if c.Path != "" {
		return c.Path
	}
	return c.URL
}

func (c Copy) put(ctx context.Context, checkpoint []byte) error {
	var err error
	if c.Path != "" {
		err = replaceFile(c.Path, checkpoint)
	}
	if err == nil && c.URL != "" {
		err = post(ctx, c.URL, checkpoint)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "The newest checkpoint cannot be copied to %s. See that it can be written there, as checkpoint in gate.yaml says.", c).Because("copy_failed")
	}
	return nil
}

// replaceFile writes a file so that at every moment it is there whole.
func replaceFile(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// post sends a checkpoint.
func post(ctx context.Context, url string, checkpoint []byte) error {
	status, _, _, err := postTo(context.WithoutCancel(ctx), url, checkpoint)
	if err == nil && status/100 != 2 {
		err = fault.New(fault.Unavailable, "It answered with status %d.", status)
	}
	return err
}
