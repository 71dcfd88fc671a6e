package shell_test

import "testing"

// TestHook_files holds what the tables alone cannot say of commands for files.
func TestHook_files(t *testing.T) {
	t.Parallel()
	k := load(t)
	for cmd, want := range map[string]string{
		"jq --arg a b '.c[$a]' x.json":            string(ro),
		"jq --arg a env .b x.json":                string(ro),
		"jq --arg a b env x.json":                 string(cm),
		"jq -n --rawfile a /etc/shadow '$a'":      string(cm),
		"jq -n --rawfile a /etc/services '$a'":    string(ro),
		"yq '.a.env' x.yaml":                      string(ro),
		"yq '.a | envsubst(nu)' x.yaml":           string(cm),
		"yq /etc/shadow":                          string(cm),
		"cp /dev/null x":                          string(ds),
		"cp x /dev/null":                          string(cm),
		"mv x /dev/null":                          string(ds),
		"install -d /opt/x":                       string(cm),
		"gzip x":                                  string(cm),
		"gzip -c x":                               string(ro),
		"gzip -":                                  string(ro),
		"gzip -c --unheard x":                     string(cm),
		"cd /etc && rg root":                      string(cm),
		"cd /srv/x && rg root":                    string(ro),
		"rg -e root /srv/x":                       string(ro),
		"cd /etc && rg -e root":                   string(cm),
		"cd /etc && rg --files":                   string(ro),
		"tree --fromfile /etc/shadow":             string(cm),
		"tree /etc":                               string(ro),
		"man 5 passwd":                            string(ro),
		"man ./x":                                 string(cm),
		"man \"$x\"":                              string(cm),
		"jo a=b":                                  string(ro),
		"jo a=@b":                                 string(cm),
		"jo @b":                                   string(cm),
		"gron x.json":                             string(ro),
		"gron https://host9/x":                    string(cm),
		"strings @x":                              string(cm),
		"ar t x.a":                                string(ro),
		"ls $(seq -f -%g 3)":                      string(cm),
		"du $(echo --files0-from=/etc/shadow)":    string(cm),
		"du -sh \"$d\"":                           string(ro),
		"seq -f /x/%g 3":                          string(ro),
		"ls $(date +/x)":                          string(cm),
		"cat $(date '+%p-o')":                     string(cm),
		"echo $(date -d 2031/01/02 +%Y-%m-%dT%T)": string(ro),
	} {
		if v := k.Classify(cmd); string(v.Class) != want {
			t.Errorf("%q is %s, want %s: %q", cmd, v.Class, want, v.Reasons)
		}
	}
	for cmd, want := range map[string]bool{"sleep 10": false, "sleep 1m 3s": false, "sleep 2h": true, "sleep inf": true, "sleep \"$x\"": true, "du -a /": true, "du -s /": false, "locate /": true} {
		if v := k.Classify(cmd); v.NeedsLimit != want {
			t.Errorf("%q needs a limit: %v, want %v", cmd, v.NeedsLimit, want)
		}
	}
}
