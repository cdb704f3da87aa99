// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"errors"
	"testing"
)

// askingContext evaluates with another evaluator when it is asked for the CFA.
type askingContext struct {
	NoContext
	cfa func() (Location, error)
}

func (c *askingContext) CFA() (Location, error) { return c.cfa() }

var (
	addr10   = []byte{0x03, 0x10, 0, 0, 0, 0, 0, 0, 0}
	cfaExpr  = []byte{0x9c}
	pushLane = []byte{0xe9, 0x03} // canonical
)

// TestCopiesOfEvaluatorsAreTheirOwn changes settings of a copy of an evaluator
// that has evaluated before, or is evaluating.
func TestCopiesOfEvaluatorsAreTheirOwn(t *testing.T) {
	derive := func(e *Evaluator) *Evaluator { return e.Derive() }
	copied := func(e *Evaluator) *Evaluator { c := *e; return &c }
	for name, other := range map[string]func(*Evaluator) *Evaluator{"copy": copied, "derived": derive, "copy of derived": func(e *Evaluator) *Evaluator { return copied(derive(e)) }} {
		t.Run(name, func(t *testing.T) {
			e := &Evaluator{Dialect: Canonical, CFI: true}
			if l, err := e.Location(t.Context(), addr10, NoContext{}); err != nil || l.place.Address != 0x10 {
				t.Fatalf("first: %v %v", l, err)
			}
			o := other(e)
			o.CFI, o.LoadBias = false, 0x1000
			check := func(o *Evaluator, want uint64, wantLane error) {
				t.Helper()
				if l, err := o.Location(t.Context(), addr10, NoContext{}); err != nil || l.place.Address != want {
					t.Errorf("%v %v, expected memory %#x", l, err, want)
				}
				if _, err := o.Value(t.Context(), pushLane, NoContext{}); !errors.Is(err, wantLane) {
					t.Errorf("%v, expected %v", err, wantLane)
				}
			}
			check(o, 0x1010, ErrNoContext)
			check(e, 0x10, ErrNotInCFI)
			// One within the other, both ways.
			free := e.Derive()
			free.CFI = false
			if _, err := free.Location(t.Context(), cfaExpr, &askingContext{cfa: func() (Location, error) {
				check(o, 0x1010, ErrNoContext)
				check(other(o), 0x1010, ErrNoContext)
				return Location{}, nil
			}}); err != nil {
				t.Error(err)
			}
			if _, err := o.Location(t.Context(), cfaExpr, &askingContext{cfa: func() (Location, error) {
				check(e, 0x10, ErrNotInCFI)
				check(free, 0x10, ErrNoContext)
				return Location{}, nil
			}}); err != nil {
				t.Error(err)
			}
			if e.nesting != 0 || o.nesting != 0 || e.root.nesting != 0 || o.root.nesting != 0 {
				t.Error("an evaluation is left under way")
			}
		})
	}
}

// TestDerivedEvaluatorsShareTheLimits makes evaluators that ask each other
// without end.
func TestDerivedEvaluatorsShareTheLimits(t *testing.T) {
	e := &Evaluator{Limits: Limits{Nesting: 8}}
	depth, deepest := 0, 0
	var ctx askingContext
	ctx.cfa = func() (Location, error) {
		depth++
		defer func() { depth-- }()
		if deepest = max(deepest, depth); depth > 100 {
			t.Fatal("no limit")
		}
		return e.Derive().Location(t.Context(), cfaExpr, &ctx)
	}
	if _, err := e.Location(t.Context(), cfaExpr, &ctx); !errors.Is(err, ErrLimit) {
		t.Errorf("%v, expected %v", err, ErrLimit)
	}
	if deepest != 8 {
		t.Errorf("%d evaluations within each other, expected 8", deepest)
	}
}
