package run

import (
	"reflect"
	"strings"
	"unicode"

	"writ"
	"writ/catalog"
)

// maxDetail is how much of a text goes into a receipt or an observation, in characters.
const maxDetail = 600

// clean makes a text fit to be shown: no secret, no control character, bounded.
func (r *Runner) clean(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(r.Redactor().String(text), "\uFFFD"))
	if runes := []rune(text); len(runes) > maxDetail {
		return string(runes[:maxDetail-1]) + "…"
	}
	return text
}

// shown returns what a target answered without secrets.
func (r *Runner) shown(s catalog.Seen) catalog.Seen {
	s.Data, s.Text = r.Redactor().Value(s.Data), r.Redactor().String(s.Text)
	return s
}

// output fills in the declared results, redacted.
func (t *task) output() {
	if t.Action == nil || t.Action.Sensitivity == catalog.Secret {
		return
	}
	out, err := t.Action.Outputs(t.scope)
	if err != nil {
		t.receipt.Detail = t.clean("The outputs could not be computed: " + sentence(err))
		return
	}
	t.receipt.Outputs = t.Redactor().Value(out).(writ.Object)
}

// wayBack computes the way back from the backup. One that holds a secret stays
// with the executor: the receipt is shown to people.
func (t *task) wayBack() {
	if t.undo || t.Action == nil || !t.Action.Writes() {
		return
	}
	call, err := t.Action.Rollback(t.scope)
	if err != nil {
		t.receipt.Detail = t.clean(strings.TrimSpace(t.receipt.Detail + " The way back could not be computed: " + sentence(err)))
		return
	}
	if call == nil {
		return
	}
	t.way = call
	if !t.showable(t.Action, call) {
		t.receipt.Detail = t.clean(strings.TrimSpace(t.receipt.Detail + " The way back holds a secret, so it is not shown; restore by hand from " + t.receipt.BackupReference + "."))
		return
	}
	t.receipt.Rollback = call
	t.receipt.RollbackReference = t.reference()
}

// reference names the way back.
func (t *task) reference() string {
	return strings.Join([]string{"rollback", t.receipt.Run, t.Plan.System, t.Plan.Action}, ":")
}

// showable reports whether a way back holds nothing that redaction would hide.
func (r *Runner) showable(a *catalog.Action, call *writ.Call) bool {
	return call == nil || a.Sensitivity != catalog.Secret && reflect.DeepEqual(r.Redactor().Value(call.Params), any(call.Params))
}
