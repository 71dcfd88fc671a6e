package shell_test

import "testing"

// TestHooks_system holds what the hooks of processes, priorities and
// partitions add to the tables.
func TestHooks_system(t *testing.T) {
	t.Parallel()
	k := load(t)
	for command, want := range map[string]string{
		"vmstat 3":                              "read_only+limit",
		"vmstat 3 2":                            "read_only",
		"vmstat":                                "read_only",
		"kill -s 0 4321":                        "read_only",
		"kill -s TERM 4321":                     "reversible_low",
		"kill -s \"$x\" 4321":                   "destructive",
		"kill 4321 1":                           "destructive",
		"kill -TERM -1":                         "destructive",
		"chrt -p 4321":                          "read_only",
		"chrt -p 9 4321":                        "config_mutation",
		"chrt -o touch ls":                      "config_mutation",
		"ionice -p 4321 -n 3":                   "reversible_low",
		"prlimit -p 4321 -u5":                   "reversible_low",
		"prlimit -u5 ls":                        "read_only",
		"su -c ls blue":                         "read_only",
		"su blue -c ls":                         "read_only",
		"su - blue":                             "config_mutation",
		"su -c ls blue -- -c 'touch /opt/x'":    "config_mutation",
		"runuser -u blue -- ls -l":              "read_only",
		"runuser -u blue -- rm /opt/x":          "destructive",
		"runuser -l blue -c 'touch /opt/x'":     "config_mutation",
		"runuser -u blue cp -l /etc/issue":      "config_mutation",
		"sysctl --dry-run -p /etc/sysctl.d/9.x": "read_only",
		"sysctl --dry-run -p /etc/shadow":       "config_mutation",
		"ps -o environ= -p 4321":                "config_mutation",
		"ps axo pid,environ":                    "config_mutation",
		"ps axo pid,comm":                       "read_only",
		"ps -eo \"$x\"":                         "config_mutation",
		"busctl get-property org.x /x org.x Environment": "config_mutation",
		"busctl get-property org.x /x org.x State":       "read_only",
		"hdparm -W /dev/vda":                             "read_only",
		"hdparm -W 1 /dev/vda":                           "config_mutation",
		"ldd /usr/lib/x/y.so":                            "read_only",
		"ldd /usr/lib/../../opt/y.so":                    "config_mutation",
		"unshare -n":                                     "config_mutation",
		"parted /dev/vda unit MiB print":                 "read_only",
		"for s in a b; do service \"$s\" status; done":   "read_only",
		"service \"$x\" status":                          "config_mutation",
		"parted /dev/vda":                                "config_mutation",
		"parted /dev/vda print mkl gpt":                  "destructive",
		"parted -s /dev/vda \"$x\"":                      "destructive",
	} {
		v := k.Classify(command)
		got := string(v.Class)
		if v.NeedsLimit {
			got += "+limit"
		}
		if got != want {
			t.Errorf("%q is %s, want %s: %v", command, got, want, v.Reasons)
		}
	}
}
