// SPDX-License-Identifier: Apache-2.0

package code

import (
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// dialectList says in which dialect the expressions of an object are: those of
// call frame information by the augmentation of the CIE, those of debugging
// information by the augmentation or the producer of the unit. Without any answer of a plugin it is
// standard DWARF.
type dialectList struct {
	rules     []dialectRule // the first that fits
	producers bool          // a rule is about producers
	vendors   bool          // a rule is about augmentations
	otherwise *locexpr.Dialect
}

// A dialectRule puts a dialect in force for the CIEs and units whose augmentation begins
// so, or for the units whose producer does. One of the prefixes is set.
type dialectRule struct {
	augmentation string
	producer     string
	dialect      *locexpr.Dialect
}

// newDialectList takes up what a plugin says of an object.
func newDialectList(m *Machine, answer *sdk.OpenObjectAnswer) (l dialectList, err error) {
	for _, o := range answer.Overrides {
		dialect, err := m.Dialect(o.Dialect)
		if err != nil {
			return dialectList{}, err
		}
		l.rules = append(l.rules, dialectRule{o.Augmentation, o.Producer, dialect})
		l.producers = l.producers || o.Producer != ""
		l.vendors = l.vendors || o.Augmentation != ""
	}
	l.otherwise, err = m.Dialect(answer.Dialect)
	return l, err
}

// ofCIE is the dialect of the expressions of a CIE and its FDEs.
func (l *dialectList) ofCIE(c *cfi.CIE) *locexpr.Dialect {
	return l.find(func(r *dialectRule) bool {
		return r.augmentation != "" && strings.HasPrefix(c.Augmentation, r.augmentation)
	})
}

// ofUnit is the dialect of the expressions of a unit of .debug_info.
func (l *dialectList) ofUnit(u dwarf.Unit) *locexpr.Dialect {
	producer := ""
	if l.producers {
		if root, err := u.Root(); err == nil {
			producer, _, _ = root.Text(dw.AttrProducer)
		}
	}
	augmentation := ""
	if l.vendors {
		augmentation = u.Augmentation()
	}
	return l.find(func(r *dialectRule) bool {
		return r.producer != "" && strings.HasPrefix(producer, r.producer) ||
			r.augmentation != "" && strings.HasPrefix(augmentation, r.augmentation)
	})
}

func (l *dialectList) find(fits func(*dialectRule) bool) *locexpr.Dialect {
	for i := range l.rules {
		if r := &l.rules[i]; fits(r) {
			return r.dialect
		}
	}
	if l.otherwise == nil {
		return locexpr.DWARF5
	}
	return l.otherwise
}
