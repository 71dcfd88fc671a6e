// Package fault is the one vocabulary of things that go wrong.
//
// An error has three parts: a Code for programs, a sentence for people that
// says what to do next, and a cause for the log. The sentence never contains
// the cause, so that a target's text or a secret in it cannot reach a person
// by way of an error. What a code means to HTTP, to a shell and to a client
// that may try again stands in one table, in table.go.
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Error is a failure with a code. Make one with New or Wrap.
type Error struct {
	Code Code
	// Reason narrows a code for programs, in snake_case: a refusal by the
	// executor is always Refused, and Reason says which check refused.
	// It may be empty.
	Reason string
	// Text is a sentence for people. It says what is wrong and what to do.
	Text string
	// Cause is for the log only. It may be nil.
	Cause error
	// After is how long to wait before the same call may be answered; 0 says
	// nothing about that.
	After time.Duration
}

// Error returns the sentence for people, without the cause.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// New returns an error with a code and a formatted sentence. The sentence is
// shown to people: no %w and nothing in it that they may not see.
func New(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Text: fmt.Sprintf(format, args...)}
}

// Wrap is New with a cause for the log.
func Wrap(c Code, cause error, format string, args ...any) *Error {
	return &Error{Code: c, Text: fmt.Sprintf(format, args...), Cause: cause}
}

// Because returns e with its Reason set.
func (e *Error) Because(reason string) *Error {
	e.Reason = reason
	return e
}

// In returns e with its After set.
func (e *Error) In(wait time.Duration) *Error {
	e.After = wait
	return e
}

// CodeOf returns the code of the first *Error in err's chain. A context error
// is Canceled or Timeout; any other error is Internal; nil is the empty code.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Internal
}

// ReasonOf returns the reason of the first *Error in err's chain, or "".
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// AfterOf returns how long to wait, by the first *Error in err's chain, in whole
// seconds, or 0.
func AfterOf(err error) int64 {
	if e, ok := errors.AsType[*Error](err); ok {
		return int64((e.After + time.Second - 1) / time.Second)
	}
	return 0
}

// TextOf returns the sentence that people may see. An error that carries none
// gets a general one: its own text may hold anything.
func TextOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Text
	}
	switch CodeOf(err) {
	case Canceled:
		return "The request was cancelled by its caller."
	case Timeout:
		return "The request ran out of time."
	}
	return "Something went wrong inside writ. The log of the process has the cause."
}
