package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"writ/fault"
)

func TestCodeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want fault.Code
	}{
		{nil, ""},
		{fault.New(fault.Stale, "moved"), fault.Stale},
		{fmt.Errorf("dispatch: %w", fault.New(fault.Stale, "moved")), fault.Stale},
		{fmt.Errorf("x: %w", context.Canceled), fault.Canceled},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), fault.Timeout},
		{errors.New("plain"), fault.Internal},
		{fault.Wrap(fault.Denied, context.Canceled, "no"), fault.Denied},
	} {
		if got := fault.CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestTextOf_neverShowsTheCause(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial: password hunter2 refused")
	for _, err := range []error{
		secret,
		fault.Wrap(fault.Failed, secret, "The target refused the change."),
		fmt.Errorf("step: %w", fault.Wrap(fault.Failed, secret, "The target refused the change.")),
	} {
		if got := fault.TextOf(err); strings.Contains(got, "hunter2") || got == "" {
			t.Errorf("TextOf(%#v) = %q", err, got)
		}
	}
}

// Case: C128.
func TestTable_unambiguous(t *testing.T) {
	t.Parallel()
	exits, codes := map[int]fault.Code{0: "success"}, map[fault.Code]bool{}
	for _, r := range fault.Table() {
		if other, taken := exits[r.Exit]; taken {
			t.Errorf("%s and %s share exit status %d", r.Code, other, r.Exit)
		}
		if codes[r.Code] {
			t.Errorf("%s stands twice", r.Code)
		}
		exits[r.Exit], codes[r.Code] = r.Code, true
		if r.HTTP < 400 || r.HTTP > 599 || r.Title == "" {
			t.Errorf("row %+v is incomplete", r)
		}
		if r.Code.Row() != r {
			t.Errorf("%s.Row() = %+v", r.Code, r.Code.Row())
		}
	}
	for _, after := range []fault.Code{fault.Failed, fault.Unverified, fault.Stranded, fault.Unknown} {
		if after.Row().Retry {
			t.Errorf("%s must not invite a retry: a write was sent", after)
		}
	}
	if got := fault.Code("nonsense").Row().Code; got != fault.Internal {
		t.Errorf("a code outside the table has row %s", got)
	}
}
