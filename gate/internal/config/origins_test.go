package config_test

import (
	"strings"
	"testing"
)

func TestLoad_origins(t *testing.T) {
	t.Parallel()
	good := "listen: {socket: s}\nexecutor: {name: local, socket: e.sock, key: " + key + "}\norigins: "
	c, _, err := load(t, good+"['https://chat.example.org', 'http://localhost:3000', 'http://[::1]:3000']\n")
	if err != nil || len(c.Origins) != 3 {
		t.Errorf("%v %v", c, err)
	}
	for _, origin := range []string{"*", "null", "", "chat.example.org", "https://Chat.example.org", "https://chat.example.org/", "https://*.example.org", "https://a@b", "file://x"} {
		if _, _, err := load(t, good+"['"+origin+"']\n"); err == nil || !strings.Contains(err.Error(), "origins[0]:") {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
