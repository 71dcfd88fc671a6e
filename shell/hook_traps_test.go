package shell_test

import "testing"

// TestHook_traps holds what the tables alone cannot say of words that look
// harmless where they stand.
func TestHook_traps(t *testing.T) {
	t.Parallel()
	k := load(t)
	for cmd, want := range map[string]string{
		"ar t x.a member":                             string(ro),
		"ar t x.a -s":                                 string(cm),
		"ar t x.a @y":                                 string(cm),
		"sort $(pgrep cron) x":                        string(ro),
		"sort $(pgrep -l cron) x":                     string(cm),
		"sort $(docker ps -q) x":                      string(ro),
		"sort $(docker ps) x":                         string(cm),
		"sort $(docker ps --format '{{.Names}}') x":   string(ro),
		"sort $(docker ps --format '{{.Command}}') x": string(cm),
		"docker-compose -f x.yml ps":                  string(ro),
		"docker-compose -f https://host9/x ps":        string(cm),
		"docker exec -w /srv/x c9 ls":                 string(ro),
		"docker exec -w /etc c9 tar c .":              string(cm),
		"ip -all netns exec touch ls":                 string(cm),
		"ip netns exec blue ls":                       string(ro),
		"rpm -qp x.rpm":                               string(ro),
		"rpm -Vp x.rpm":                               string(cm),
		"rpm -V --noscripts -p x.rpm":                 string(ro),
		"rsync -an x y":                               string(ro),
		"rsync -an x host9:y":                         string(cm),
		"rsync -an ./a:b y":                           string(ro),
		"git show HEAD:x":                             string(ro),
		"git show HEAD:.env":                          string(cm),
		"git diff x y":                                string(ro),
		"git diff x /etc/shadow":                      string(cm),
		"git -C /srv/x log --stat":                    string(ro),
		"git -C /srv/x log -p":                        string(cm),
		"git -C /srv/x log -p --no-textconv":          string(ro),
		"git -C /srv/x diff --no-textconv":            string(cm),
		"git -C /srv/x describe --dirty":              string(cm),
		"cd /srv/x && git blame y":                    string(cm),
		"git log --format=%h":                         string(ro),
		"git log --format=%GS":                        string(cm),
		"git checkout x":                              "reversible_low",
		"git checkout -- x":                           string(ds),
		"git checkout -q -- x":                        string(ds),
		"git checkout x y":                            string(ds),
		"git checkout -b x y":                         "reversible_low",
		"git remote show origin":                      string(ro),
		"git remote show host9:x":                     string(cm),
	} {
		if got := string(k.Classify(cmd).Class); got != want {
			t.Errorf("%s is %s, want %s", cmd, got, want)
		}
	}
}
