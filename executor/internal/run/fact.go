package run

import (
	"strings"

	"writ"
	"writ/catalog"
)

// facts is what may leave of a set of facts: redacted, bounded, and without what
// the own catalog calls secret.
func (r *Runner) facts(a *catalog.Action, scope *catalog.Scope) *writ.Facts {
	out := &writ.Facts{Facts: []writ.Fact{}, Health: writ.Health{Reasons: []string{}}}
	size := 0
	for _, told := range a.Facts(scope) {
		f := writ.Fact{Name: told.Name, Type: told.Kind, Sensitivity: told.Sensitivity}
		text := strings.ToValidUTF8(r.Redactor().String(told.Text), "\uFFFD")
		switch {
		case told.Sensitivity == catalog.Secret:
			f.Missing = writ.FactSecret
		case told.Err != nil:
			f.Missing = writ.FactUnreadable
		case len(text) > writ.MaxFact || size+len(text) > writ.MaxFactsSize:
			f.Missing = writ.FactTooLarge
		default:
			size += len(text)
			f.Value, f.Absent = text, told.Absent
		}
		out.Facts = append(out.Facts, f)
	}
	state, reasons := a.Health(scope)
	out.Health.State = state
	for _, text := range reasons {
		out.Health.Reasons = append(out.Health.Reasons, r.clean(text))
	}
	return out
}
