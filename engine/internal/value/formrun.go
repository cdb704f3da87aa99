// SPDX-License-Identifier: Apache-2.0

package value

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// This file reads an object by its form. Everything in the object is checked before it is used:
// many variables are not initialized yet.

// run reads one object by a form.
type run struct {
	r      *Reader
	form   *boundForm
	object locexpr.Location
	slots  []operand
	depth  int
	v      *trace.Value

	isWhole   bool   // the value was replaced by the one that it stands for
	hasBegun  bool   // elements are being read: an error is a problem of the rest
	expected  uint64 // the number of elements in the object's own count
	isCounted bool
	found     uint64 // the number of elements so far, shown or not
}

var (
	// errOtherForm is the error for an object that the form is not for.
	errOtherForm = errors.New("the form is for other objects")
	// errEnough ends the reading where nothing more is shown.
	errEnough = errors.New("enough")
	// errTooLong is the error after too many places were looked at.
	errTooLong = errors.New("more places would have to be looked at than are")
)

// brokenError is the error for an object that breaks an invariant of initialized ones.
type brokenError struct{ form, reason string }

func (e *brokenError) Error() string {
	return "not a valid " + e.form + ": " + e.reason
}

func (r *run) broken(format string, args ...any) error {
	return &brokenError{r.form.name, fmt.Sprintf(format, args...)}
}

// maxSteps bounds the places that are looked at for one variable: slots of hash tables,
// nodes of chains.
const maxSteps = 1 << 15

// memory returns the location of an address in an object.
func (r *run) memory(address uint64) locexpr.Location {
	return locexpr.MemoryLocation(locexpr.DefaultSpace, address).WithScope(r.r.context.Scope())
}

// load reads an integer of at most 8 bytes.
func (r *run) load(ctx context.Context, l locexpr.Location, size uint64) (uint64, error) {
	return r.r.integer(ctx, l, size)
}

// loadBits reads a bit field.
func (r *run) loadBits(ctx context.Context, l locexpr.Location, bits uint64) (uint64, error) {
	b := r.r.word[:(bits+7)/8]
	clear(b)
	if err := l.Read(ctx, r.r.context, b, bits); err != nil {
		return 0, err
	}
	n := integer(b, r.r.context.ByteOrder())
	if pad := bits % 8; r.r.context.ByteOrder() == locexpr.BigEndian && pad != 0 {
		n >>= 8 - pad
	}
	return n, nil
}

// number evaluates an expression of a clause.
func (r *run) number(ctx context.Context, b *bound) (uint64, error) {
	o, err := b.eval(ctx, r)
	return o.n, err
}

// step counts a place that is looked at.
func (r *run) step() error {
	if r.r.steps--; r.r.steps < 0 {
		r.r.isOwn = true // a variable with more steps left may get further
		return errTooLong
	}
	return nil
}

// do executes the clauses from an index on.
func (r *run) do(ctx context.Context, i int) error {
	for ; i < len(r.form.clauses); i++ {
		c := &r.form.clauses[i]
		switch c.op {
		case opFor:
			r.hasBegun = true
			return r.forEach(ctx, c, i+1)
		case opFollow:
			r.hasBegun = true
			return r.follow(ctx, c, i+1)
		case opTree:
			r.hasBegun = true
			return r.tree(ctx, c, i+1)
		case opBTree:
			r.hasBegun = true
			return r.btree(ctx, c, i+1)
		case opIf:
			if n, err := r.number(ctx, c.exprs[0]); err != nil || n == 0 {
				return err
			}
		default:
			if err := r.one(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// one executes a clause that is not repeated.
func (r *run) one(ctx context.Context, c *boundClause) (err error) {
	switch c.op {
	case opLet, opPlace:
		if x := c.exprs[0]; x.class != classType || x.eval != nil {
			r.slots[c.slot], err = x.eval(ctx, r)
		}
		return err
	case opWhen:
		n, err := r.number(ctx, c.exprs[0])
		if err == nil && n == 0 {
			err = errOtherForm
		}
		return err
	case opCheck:
		n, err := r.number(ctx, c.exprs[0])
		if err == nil && n == 0 {
			err = r.broken("%s", c.text)
		}
		return err
	case opCount:
		r.expected, err = r.number(ctx, c.exprs[0])
		r.isCounted = true
		if err == nil && r.expected > 1<<48 {
			err = r.broken("it would have %d elements", r.expected)
		}
		return err
	case opText:
		return r.summary(ctx, c)
	case opString, opUTF8:
		return r.text(ctx, c)
	case opLeaves:
		for i, x := range c.leaves {
			r.hasBegun = true
			if err := r.emit(ctx, "["+strconv.Itoa(i)+"]", trace.RolePlain, x); err != nil {
				return err
			}
		}
		return nil
	case opItem:
		return r.emit(ctx, "["+strconv.FormatUint(r.found, 10)+"]", trace.RolePlain, c.exprs[0])
	case opEntry:
		return r.entry(ctx, c)
	case opMember:
		return r.emit(ctx, c.name, trace.RolePlain, c.exprs[0])
	case opWhole:
		return r.whole(ctx, c)
	}
	return nil
}
