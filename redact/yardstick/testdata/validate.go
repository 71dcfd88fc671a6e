package utils

import (
	"encoding/json"
	"os"

	"github.com/zricethezav/gitleaks/v8/config"
)

// Validate writes down the vectors of a rule instead of trying them.
func Validate(rule config.Rule, positive, negative []string) *config.Rule {
	f, err := os.OpenFile(os.Getenv("VECTORS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if err := json.NewEncoder(f).Encode(map[string]any{"rule": rule.RuleID, "regex": rule.Regex, "group": rule.SecretGroup, "positive": positive, "negative": negative}); err != nil {
		panic(err)
	}
	return &rule
}

// ValidateWithPaths leaves out the vectors that say nothing without a path.
func ValidateWithPaths(rule config.Rule, positive, negative map[string]string) *config.Rule {
	var texts []string
	for _, text := range positive {
		if text != "" {
			texts = append(texts, text)
		}
	}
	return Validate(rule, texts, nil)
}
