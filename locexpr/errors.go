// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"errors"
	"fmt"
)

// ErrorKind is the kind of reason why an evaluation failed (A.2.5).
type ErrorKind uint8

// The kinds of errors.
const (
	// IllFormed: the expression itself is wrong, in any context. Stack
	// underflow and bytes that cannot be decoded are ill-formed.
	IllFormed ErrorKind = iota
	// Evaluation: the expression cannot be evaluated here. Division by zero, a
	// context element that is missing, state that cannot be read, and limits
	// exceeded are evaluation errors.
	Evaluation
)

// String returns the kind as the output of unwindd spells it.
func (k ErrorKind) String() string {
	if k == Evaluation {
		return "evaluation"
	}
	return "ill-formed"
}

// The reasons that callers may want to distinguish.
var (
	// ErrUndefined: a bit of the undefined location storage was needed.
	ErrUndefined = errors.New("location is undefined")
	// ErrReadOnly: implicit storage cannot be written.
	ErrReadOnly = errors.New("location is read only")
	// ErrOutOfBounds: a bit outside its location storage was needed.
	ErrOutOfBounds = errors.New("outside the location storage")
	// ErrNoContext: a context element that the evaluation needs is not
	// specified (A.2.5.1). What wraps it names the element.
	ErrNoContext = errors.New("not in the evaluation context")
	// ErrLimit: the expression exceeds one of the Limits.
	ErrLimit = errors.New("limit exceeded")
	// ErrDivisionByZero: DW_OP_div or DW_OP_mod by 0.
	ErrDivisionByZero = errors.New("division by zero")
	// ErrStackUnderflow: an operation needs more entries than the stack holds.
	ErrStackUnderflow = errors.New("stack underflow")
	// ErrImplicitPointer: an implicit pointer was used otherwise than
	// A.2.5.4.4.5 allows.
	ErrImplicitPointer = errors.New("implicit pointer has no value of its own")
	// ErrType: a value does not have the type that an operation needs
	// (DWARF 5, 2.5.1.4).
	ErrType = errors.New("wrong type")
	// ErrArithmetic: a result that the type of a value cannot represent, or an
	// encoding for which no arithmetic is defined here.
	ErrArithmetic = errors.New("no such value")
	// ErrNotInCFI: an operation that call frame information must not use
	// (A.6.4.2).
	ErrNotInCFI = errors.New("operation is not allowed in call frame information")
)

// Error is the reason why an expression could not be decoded or evaluated.
type Error struct {
	Kind   ErrorKind
	Offset int    // of the operation, in bytes from the start of the expression
	Op     string // the operation's name; "" where the bytes are no operation
	Err    error  // the reason
}

// Error returns the kind, the place and the reason.
func (e *Error) Error() string {
	what := "ill-formed expression"
	if e.Kind == Evaluation {
		what = "evaluation error"
	}
	if e.Op == "" {
		return fmt.Sprintf("%s: offset %d: %v", what, e.Offset, e.Err)
	}
	return fmt.Sprintf("%s: offset %d: %s: %v", what, e.Offset, e.Op, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// illFormed marks a reason that makes the expression ill-formed. The loop that runs the
// operations adds the position.
type illFormed struct{ error }

// Unwrap returns the reason itself.
func (e illFormed) Unwrap() error { return e.error }

// IllFormedError marks err, which is not nil, as the fault of the expression. An error of a
// Context that is not marked is an evaluation error.
func IllFormedError(err error) error { return illFormed{err} }

// IsIllFormed reports whether an error is one for which the documents call the DWARF ill-formed.
func IsIllFormed(err error) bool { return kindOf(err) == IllFormed }

func illFormedf(format string, args ...any) error {
	return illFormed{fmt.Errorf(format, args...)}
}

// kindOf returns the kind of the reason of an operation. A reason that is not marked comes
// from the context, or is an evaluation error by its nature; an expression that the context
// evaluated keeps the kind of its own error.
func kindOf(err error) ErrorKind {
	if mark := (illFormed{}); errors.As(err, &mark) {
		return IllFormed
	}
	if nested := (*Error)(nil); errors.As(err, &nested) {
		return nested.Kind
	}
	return Evaluation
}
