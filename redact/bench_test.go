package redact_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"writ/redact"
)

// BenchmarkString_clean redacts log lines that hold no secret, as nearly all
// do, beside a plain copy of them.
func BenchmarkString_clean(b *testing.B) {
	line := `time=2026-05-04T03:02:01.123Z level=INFO msg="step done" change=chg_01jtdb3c4g9q0v8x7y6z5w4t3s ` +
		`target=proxmox/pve/lxc/121 url=https://pve.example.org:8006/api2/json/nodes/pve/lxc/121/config status=200 took=31ms` + "\n"
	text := strings.Repeat(line, 64)
	var secrets []string
	for i := range 20 {
		secrets = append(secrets, fmt.Sprintf("fake-secret-%02d-of-some-forty-characters-00", i))
	}
	r := redact.New([]byte("key"), secrets...)
	for name, redacted := range map[string]func(string) string{"redact": r.String, "strict": r.Strict().String, "copy": strings.Clone} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if redacted(text) == "" {
					b.Fatal("nothing is left")
				}
			}
		})
	}
	b.Run("writer", func(b *testing.B) {
		w := r.Writer(io.Discard)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := io.WriteString(w, text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestString_hostile: no text takes long, whoever made it up.
func TestString_hostile(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := redact.New([]byte("key"), "not4real-canary-one-00", "six six")
	const size = 24 << 10
	for _, part := range []string{
		"password=", "key=", `password="`, `password='`, "password ", "a key ", "curl ", "curl -u a:b ", "mysql -p", "username a ", "authorization:",
		"authorization: ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN A PRIVATE KEY-----\n", "kind: Secret\n", "kind: Secret data: {", "://", "://a:", "a@://b:",
		"eyJ-", "eyJaaaaaaaa.", "[redacted:x]", "[redacted:x]password=a ", `\`, `\"`, `password=\"`, "%", "%25", "&amp;", "&", "\n", "\r\n ", "not4real-canary-one-0",
		"not4real-canary-one-00", "!a=", "$6$", "*", "sk-", "s.", "[", "-p ", "--password ", "xoxb-", "data:\n a: b\n", "<token>", "token\n value:", "Set-Cookie: a=\"",
	} {
		start := cpuTime(t)
		r.String(strings.Repeat(part, size/len(part)))
		if took := cpuTime(t) - start; took > 5*time.Second {
			t.Errorf("%d KiB of %q took %v", size>>10, part, took)
		}
	}
}

// cpuTime is what this thread has used of a processor, whoever else uses it.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
