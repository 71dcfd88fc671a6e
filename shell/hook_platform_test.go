package shell_test

import "testing"

// TestHook_platform holds what the tables of options cannot say: what runs
// inside, whether a secret is shown, and where code is loaded from.
func TestHook_platform(t *testing.T) {
	t.Parallel()
	k := load(t)
	for cmd, want := range map[string]string{
		"kubectl exec db-0 -c main -- ls -l /opt":                    "read_only",
		"kubectl exec db-0 -c main -- rm -r /opt/x":                  "destructive",
		"kubectl exec db-0 -c main -- touch /opt/x --help":           "config_mutation",
		"kubectl exec db-0":                                          "config_mutation",
		"lxc-attach -n db1 -- uptime":                                "read_only",
		"lxc-attach db1 -- rm -r /opt/x":                             "destructive",
		"kubectl get secret db":                                      "read_only",
		"kubectl get secret db -o name":                              "read_only",
		"kubectl get secret db -o=yaml":                              "config_mutation",
		"kubectl get pods,SECRETS.v1. -o json":                       "config_mutation",
		"kubectl get pods x -o yaml":                                 "read_only",
		"kubectl get -f /opt/x.yaml -o yaml":                         "config_mutation",
		"kubectl get -f https://192.0.2.1/x":                         "config_mutation",
		"kubectl get pods -o go-template-file=/opt/t":                "config_mutation",
		"kubectl get --raw /metrics":                                 "read_only",
		"kubectl get --raw /metrics/../api/v1/secrets":               "config_mutation",
		"kubectl delete pod x --dry-run=client":                      "read_only",
		"kubectl delete po x --dry-run=client --dry-run=none":        "config_mutation",
		"docker inspect --format=json db1":                           "config_mutation",
		"docker inspect -f=json db1":                                 "config_mutation",
		"docker inspect -f '{{.Id}}' db1":                            "read_only",
		"pvesh get /nodes/n7/status":                                 "read_only",
		"pvesh get /nodes/n7/qemu/311/agent/info":                    "config_mutation",
		"rpm -qp /opt/x.rpm":                                         "read_only",
		"rpm -qp \"http://192.0.2.1/$x\"":                            "config_mutation",
		"mvn --version":                                              "read_only",
		"cd /opt/x && mvn --version":                                 "config_mutation",
		"ruby -e 'File.unlink(\"/opt/x\")'":                          "destructive",
		"skopeo inspect docker://registry.example.org/x":             "read_only",
		"skopeo inspect \"docker://$x.example.org/x\"":               "config_mutation",
		"docker inspect -f '{{$x := .}}{{$x}}' db1":                  "config_mutation",
		"docker inspect -f '{{index .ContainerConfig \"Env\"}}' db1": "config_mutation",
		"docker inspect -f '{{range $p, $c := .NetworkSettings.Ports}}{{$p}} {{(index $c 0).HostPort}}{{end}}' db1": "read_only",
		"docker inspect --format '' db1":                     "config_mutation",
		"docker search \"x/$(hostname)\"":                    "config_mutation",
		"npm diff --registry http://192.0.2.1 --diff=\"$x\"": "config_mutation",
		"qemu-img info json:{}":                              "config_mutation",
		"npm view \"$x\" --registry http://192.0.2.1":        "config_mutation",
	} {
		if v := k.Classify(cmd); string(v.Class) != want {
			t.Errorf("%q is %s, want %s: %q", cmd, v.Class, want, v.Reasons)
		}
	}
}
