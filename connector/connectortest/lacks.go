package connectortest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Lacks says where an answer is not the JSON that it must contain, or "". An
// object may have more members than asked for, a list has exactly the elements
// asked for, "*" is anything but null; nothing asked for is no body at all.
func Lacks(body []byte, want string) string {
	if want == "" {
		if len(bytes.TrimSpace(body)) > 0 {
			return "a body came, none was expected"
		}
		return ""
	}
	var have, need any
	if err := json.Unmarshal([]byte(want), &need); err != nil {
		return "the test's own JSON: " + err.Error()
	}
	if err := json.Unmarshal(body, &have); err != nil {
		return err.Error()
	}
	return contains(have, need, "answer")
}

func contains(have, need any, at string) string {
	switch need := need.(type) {
	case map[string]any:
		m, ok := have.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, not an object", at, have)
		}
		for name, v := range need {
			got, ok := m[name]
			if !ok {
				return fmt.Sprintf("%s has no member %s", at, name)
			}
			if problem := contains(got, v, at+"."+name); problem != "" {
				return problem
			}
		}
		return ""
	case []any:
		l, ok := have.([]any)
		if !ok || len(l) != len(need) {
			return fmt.Sprintf("%s is %v, want a list of %d", at, have, len(need))
		}
		for i := range need {
			if problem := contains(l[i], need[i], fmt.Sprintf("%s[%d]", at, i)); problem != "" {
				return problem
			}
		}
		return ""
	case string:
		if need == "*" && have != nil {
			return ""
		}
	}
	if have != need {
		return fmt.Sprintf("%s is %v, want %v", at, have, need)
	}
	return ""
}
