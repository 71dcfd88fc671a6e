package shell_test

import "testing"

// TestHint holds that what is advised is there and is the shortest way, and that
// nothing is advised that would not make the text read-only.
func TestHint(t *testing.T) {
	t.Parallel()
	k := load(t)
	for cmd, want := range map[string]string{
		"apt-get upgrade":                         "add -s",
		"sudo zfs destroy tank/x":                 "add -n",
		"cd /opt && rsync -a x y; sed s/a/b/ z":   "add -n, which only lists what would be copied",
		"sed -i s/a/b/ /srv/x":                    "leave out -i",
		"sed -ni.old p /srv/x":                    "leave out -i",
		"sed --in-place=.old p /srv/x | head":     "leave out --in-place",
		"sort -k2 -o /srv/y /srv/x":               "leave out -o /srv/y",
		"sort -uo/srv/y /srv/x":                   "leave out -o",
		"sort --output=/srv/y /srv/x":             "leave out --output",
		"find /opt -name '*.tmp' -delete":         "leave out -delete",
		"sort -o /srv/y /srv/x; touch /srv/x":     "", // one edit is not enough
		"sort -o /srv/y /srv/x > /srv/z":          "",
		"systemctl restart cron":                  "",
		"sh -c 'sort -o /srv/y /srv/x; ls'":       "add -n", // of the shell: the other edit would stand within quotes
		"sort '-o' /srv/y /srv/x":                 "",
		"docker exec web1 sort -o /srv/y /srv/x":  "",
		"sort -n /srv/x":                          "",
		"apt-get upgrade -o APT::Get::Assume=yes": "",
	} {
		if v := k.Explain(cmd); v.Hint != want {
			t.Errorf("the hint for %q (%s) is %q, want %q", cmd, v.Class, v.Hint, want)
		}
	}
}
