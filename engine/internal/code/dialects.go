// SPDX-License-Identifier: Apache-2.0

package code

import (
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// dialectList finds the dialect of an object's expressions: in call frame information by the
// augmentation of the CIE, in debugging information by the augmentation or the producer of the
// unit. Without an answer of a plugin it is standard DWARF.
type dialectList struct {
	rules     []dialectRule // the first that fits counts
	producers bool          // a rule has a producer
	vendors   bool          // a rule has an augmentation
	otherwise *locexpr.Dialect
}

// A dialectRule is the dialect of the CIEs and units whose augmentation has a prefix, or of the
// units whose producer has. One of the prefixes is set.
type dialectRule struct {
	augmentation string
	producer     string
	dialect      *locexpr.Dialect
}

// newDialectList makes the list of a plugin's answer about an object.
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

// ofCIE returns the dialect of the expressions of a CIE and its FDEs.
func (l *dialectList) ofCIE(c *cfi.CIE) *locexpr.Dialect {
	return l.find(func(r *dialectRule) bool {
		return r.augmentation != "" && strings.HasPrefix(c.Augmentation, r.augmentation)
	})
}

// ofUnit returns the dialect of the expressions of a unit of .debug_info.
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
