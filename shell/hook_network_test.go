package shell_test

import (
	"testing"

	"writ"
)

// TestHooks_network holds what tables cannot say of the network's commands.
func TestHooks_network(t *testing.T) {
	t.Parallel()
	k := load(t)
	for command, want := range map[string]writ.Class{
		// what comes over the input is sent on
		"openssl s_client -connect db1:443":                                        ro,
		"openssl s_client -connect db1:443 < /dev/null":                            ro,
		"echo Q | openssl s_client -connect db1:443 | openssl x509 -noout -dates":  ro,
		"printf 'a\\n' | openssl s_client -connect db1:25 -starttls smtp":          ro,
		"openssl s_client -connect db1:443 <<< Q":                                  ro,
		"timeout 3 openssl s_client -connect db1:443 </dev/null 2>&1 | head -n 20": ro,
		"cat /opt/x | openssl s_client -connect db1:443":                           cm,
		"cat /opt/x | timeout 3 openssl s_client -connect db1:443":                 cm,
		"openssl s_client -connect db1:443 < /opt/x":                               cm,
		"openssl s_client -connect db1:443 <<< \"$x\"":                             cm,
		"cat /opt/x | while true; do openssl s_client -connect db1:443; done":      cm,
		"cat /opt/x | { openssl s_client -connect db1:443; }":                      cm,
		"{ openssl s_client -connect db1:443; } < /opt/x":                          cm,
		"cat /opt/x | tee >(openssl s_client -connect db1:443)":                    cm,
		"exec 0< /opt/x; openssl s_client -connect db1:443":                        cm,
		"f() { openssl s_client -connect db1:443; }; cat /opt/x | f":               cm,
		"echo() { cat /opt/x; }; echo | openssl s_client -connect db1:443":         cm,
		"cat /opt/x | sh -c 'openssl s_client -connect db1:443'":                   cm,
		"echo $(cat /opt/x) | openssl s_client -connect db1:443":                   cm,
		// operands that are read again in another language
		"nft list tables":                       ro,
		"nft list ruleset \\; flush ruleset":    cm,
		"nft 'list ruleset; flush ruleset'":     ds,
		"nft list 'ruleset; add table ip x'":    cm,
		"psql -c 'select 1' '\\gexec'":          cm,
		"psql -c 'select 1' 'shop'":             ro,
		"postconf mydomain":                     ro,
		"postconf mydomain=example.org":         cm,
		"rclone lsl blue:x":                     ro,
		"rclone lsl ':local,links:/opt'":        cm,
		"rclone lsl blue,ssh=/opt/x:dir":        cm,
		"aws s3 ls s3://blue":                   ro,
		"aws ec2 describe-tags --filters @x":    cm,
		"aws sts get-caller-identity --query x": ro,
		// files that may be a key, or make something run
		"openssl x509 -noout -subject -in /etc/ssl/private/blue.pem":             ro,
		"openssl x509 -in /etc/shadow":                                           cm,
		"openssl x509 -in /etc/ssl/private/../../shadow":                         cm,
		"for f in /etc/ssl/certs/*.pem; do openssl x509 -noout -in \"$f\"; done": ro,
		"for f in /opt/a.pem /opt/b.pem; do openssl x509 -noout -in $f; done":    ro,
		"for f in /opt/a.pem /etc/shadow; do openssl x509 -noout -in $f; done":   cm,
		"haproxy -c -f /etc/haproxy/haproxy.cfg":                                 ro,
		"haproxy -c -f /etc/../opt/x.cfg":                                        cm,
		"haproxy -c -f /etc/haproxy/haproxy.cfg -f /opt/x.cfg":                   cm,
		"haproxy -c -f $x": cm,
		// what a request carries
		"curl -H 'Host: example.org' http://127.0.0.1/":            ro,
		"curl -H 'Host: example.org' -H @/opt/x http://127.0.0.1/": cm,
		"curl -H \"Host: $x\" http://127.0.0.1/":                   cm,
		"curl -H X-Do: http://127.0.0.1/":                          cm,
		// what machines are started with
		"gcloud compute instances list --format 'table(name,status)'":    ro,
		"gcloud compute instances list --format yaml":                    cm,
		"gcloud compute instances list --format 'value(metadata.items)'": cm,
		// JavaScript
		"mongosh --quiet --eval 'db.adminCommand({ping: 1})'": ro,
		"mongosh --eval 'db.orders.countDocuments()'":         ro,
		"mongosh --eval 'rs.status(); rs.stepDown()'":         cm,
		"mongosh --eval 'db.stats()' --eval 'db.x.drop()'":    ds,
		"mongosh shop":                               cm,
		"mongosh shop --eval 'rs.status()'":          ro,
		"mongosh --eval 'rs.status()' /opt/x.js":     cm,
		"mongosh --eval 'rs.status()' mongodb://db1": ro,
		// tables of a mail server
		"postmap -q blue hash:/etc/aliases":    ro,
		"postmap -q root texthash:/etc/shadow": cm,
		"postmap -q x pcre:/opt/x":             cm,
	} {
		if v := k.Classify(command); v.Class != want {
			t.Errorf("%q is %s, want %s: %q", command, v.Class, want, v.Reasons)
		}
	}
}
