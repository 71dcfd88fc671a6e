package shell_test

import (
	"testing"

	"writ/shell"
)

func TestClassify_input(t *testing.T) {
	k, err := shell.Load(shell.Shipped())
	if err != nil {
		t.Fatal(err)
	}
	for cmd, want := range map[string]bool{
		"rev":                                    true,
		"rev /etc/issue":                         false,
		"rev < /etc/issue":                       false,
		"rev 3< /etc/issue":                      true,
		"rev <&0":                                true,
		"rev <<< abc":                            false,
		"date | rev -":                           false,
		"rev -":                                  true,
		"date | rev | nl":                        false,
		"date | rev; nl":                         true,
		"date && nl":                             true,
		"(date; uptime) | { rev; }":              false,
		"date | bash -c 'nl'":                    false,
		"bash -c 'nl'":                           true,
		"seq 3 | xargs wc -l":                    false,
		"xargs":                                  true,
		"xargs -a /opt/list":                     false,
		"grep -r blue /usr/share":                false,
		"grep -r blue":                           false,
		"grep -e blue":                           true,
		"grep -e blue /etc/issue":                false,
		"cat /dev/tty":                           true,
		"cat /dev/stdin":                         true,
		"date | cat /dev/stdin":                  false,
		"date | cat < /dev/tty":                  true,
		"jq -n 1":                                false,
		"tr -d x":                                true,
		"printf '%s' {1..3}":                     false,
		"printf '%s' {1..30000000}":              true,
		"find /opt -name x -exec grep -l y {} +": false,
	} {
		if v := k.Classify(cmd); v.NeedsLimit != want || v.Class != "read_only" {
			t.Errorf("%q is %s and needs a limit: %v, want %v: %v", cmd, v.Class, v.NeedsLimit, want, v.Reasons)
		}
	}
}
