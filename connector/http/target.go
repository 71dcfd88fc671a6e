package http

import (
	"context"
	"errors"

	"writ"
	"writ/catalog"
	"writ/connector"
)

type target struct {
	dialect   Dialect
	system    connector.System
	base      address
	endpoints map[string]address
}

// Do makes one call, with exactly one RoundTrip.
func (t *target) Do(ctx context.Context, call catalog.Call) (catalog.Seen, error) {
	writes, known := driver{}.Verbs()[call.Verb]
	if !known {
		return catalog.Seen{}, connector.Errorf(writ.NotExecuted, "unknown_verb", 0,
			"Kind %s has no verb %q; use get, post, put, patch or delete.", t.dialect.Kind, call.Verb)
	}
	q, err := t.request(ctx, call, writes)
	if err != nil {
		return catalog.Seen{}, err
	}
	via := t.system.Transport
	if call.At != "" {
		via = t.system.Plain
	}
	response, err := via.RoundTrip(q)
	if err != nil {
		return catalog.Seen{}, incomplete(writes, 0, err)
	}
	defer response.Body.Close()
	a, err := readAnswer(q, response)
	if err != nil {
		return catalog.Seen{}, incomplete(writes, response.StatusCode, err)
	}
	seen := catalog.Seen{Found: true, Status: a.Status, ETag: a.Header.Get("ETag")}
	if call.At == "" {
		if call.AbsentOK && t.dialect.Absent(a) {
			return catalog.Seen{Status: a.Status}, nil
		}
		if refused := t.dialect.Classify(a); refused != nil {
			if !writes {
				refused.Outcome = writ.NotExecuted
			}
			return catalog.Seen{}, refused
		}
	}
	if seen.Data, seen.Text, err = a.decode(); err != nil {
		return catalog.Seen{}, incomplete(writes, a.Status, err)
	}
	if t.dialect.Inner != nil && call.At == "" {
		seen.Data = t.dialect.Inner(seen.Data)
	}
	return seen, nil
}

// incomplete is the error of a call without a whole, readable answer. Transport
// and Authenticate say themselves what they know; anything else is treated as
// something that happened after the request left.
func incomplete(writes bool, status int, err error) *connector.Error {
	failed, ok := errors.AsType[*connector.Error](err)
	if !ok {
		failed = connector.Errorf(writ.Unknown, "bad_answer", status, "The answer of the system could not be read.")
		failed.Cause = err
	}
	own := *failed // the error of a login may be that of several calls
	if !writes {
		own.Outcome = writ.NotExecuted
	}
	return &own
}

// Check reads something harmless.
func (t *target) Check(ctx context.Context) ([]string, error) {
	return t.dialect.Check(ctx, t.system, t)
}

// Close does nothing: the transport belongs to whoever made it.
func (t *target) Close() error { return nil }
