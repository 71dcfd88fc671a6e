// Package sys is the only door to the clocks, to randomness and to new ids.
//
// A program makes one Sys and passes it down; nothing reads the clock or the
// random source in any other way, so that a test owns both.
package sys

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"io"
	"log/slog"
	"time"
)

// Sys is what a program needs of the machine besides files and network.
type Sys struct {
	// Now returns the time in UTC, cut to milliseconds: what is stored, signed
	// and compared has one precision everywhere.
	Now func() time.Time
	// Uptime returns the moment by the clock that nobody sets; nil knows none.
	Uptime func() Moment
	// Rand is a cryptographic random source.
	Rand io.Reader
	// Log receives what operators read when something goes wrong.
	Log *slog.Logger
}

// Real returns the machine's own clock and randomness.
func Real(log *slog.Logger) Sys {
	return Sys{
		Now:    func() time.Time { return time.Now().UTC().Truncate(time.Millisecond) },
		Uptime: uptime(),
		Rand:   rand.Reader,
		Log:    log,
	}
}

var base = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID returns prefix + "_" + 26 characters: 48 bits of time in milliseconds,
// so that ids sort by age, then 80 bits of randomness.
func (s Sys) NewID(prefix string) string {
	var b [16]byte
	s.fill(b[6:])
	ms := s.Now().UnixMilli()
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	return prefix + "_" + base.EncodeToString(b[:])
}

// NewSecret returns n random bytes in hexadecimal.
func (s Sys) NewSecret(n int) string {
	b := make([]byte, n)
	s.fill(b)
	return hex.EncodeToString(b)
}

func (s Sys) fill(b []byte) {
	// A machine without randomness cannot make an id that is safe to use.
	if _, err := io.ReadFull(s.Rand, b); err != nil {
		panic("sys: the random source failed: " + err.Error())
	}
}
