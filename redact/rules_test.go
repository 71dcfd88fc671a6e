package redact

import (
	"slices"
	"strings"
	"testing"
)

// TestRules: the example of each rule is found by this rule.
func TestRules(t *testing.T) {
	t.Parallel()
	n := 0
	for _, rules := range known().rules {
		for _, r := range rules {
			n++
			hits := 0
			for start := range len(r.example) {
				for w := range strings.FieldsSeq(r.words) {
					w = strings.ReplaceAll(w, "·", " ")
					if strings.HasPrefix(strings.ToLower(r.example[start:]), w) {
						r.find(r.example, start-r.back, func(span) { hits++ })
					}
				}
			}
			if hits == 0 {
				t.Errorf("the rule %s of %q does not find its example %q", r.kind, r.words, r.example)
			}
			if got := new(Redactor).String(r.example); !strings.Contains(got, "[redacted:") {
				t.Errorf("nothing is hidden of %q", r.example)
			}
		}
	}
	if len(tokens) < 60 || n < 200 {
		t.Errorf("%d tokens, %d words with a rule: some are lost", len(tokens), n)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"DB_PASSWORD2": "db password", "dbPassword": "db password", "APIKey": "api key", "x-api-key": "x api key",
		"spring.datasource.password": "spring datasource password", "tokenizer": "tokenizer", "": "", "HTTPToken1": "http token",
	} {
		if got := split(name); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("split(%q) = %q", name, got)
		}
	}
}

func TestWeigh(t *testing.T) {
	t.Parallel()
	for w, names := range map[weight]string{
		strong: `password DB_PASSWORD PGPASSWORD userpass token tokens api_key apiKey X-Api-Key secretKey private_key mytoken
			gitlabToken client_secret snmp_community access.key psk credentials token1 flutterwavePubKey_token`,
		weak: `key ssh_key auth session host_key login`,
		none: `tokenizer passive bypass compass primary_key foreignKey public_key publicToken token_type tokenId password_policy
			key_name max_tokens monkey keyboard secretName PASSWORD_FILE passed author community_name key_length name`,
	} {
		for name := range strings.FieldsSeq(names) {
			if got := weigh(name); got != w {
				t.Errorf("weigh(%q) = %d, want %d", name, got, w)
			}
		}
	}
}
