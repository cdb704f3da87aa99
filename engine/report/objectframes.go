// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// OpenObject opens a code object, FILE or FILE#NAME, with the relocations of its architecture,
// which m finds. d is the architecture's description; nil: no architecture has the machine of
// the object. The caller closes the object.
func OpenObject(path string, m *plugin.Manager, formats object.Formats) (o *object.Object, d *sdk.Description, err error) {
	if o, err = object.OpenNested(path, formats); err != nil {
		return nil, nil, err
	}
	if d, err = describeObject(m, o); err != nil {
		_ = o.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if d != nil {
		o.SetRelocations(d.Relocations)
	}
	return o, d, nil
}

// describeObject returns the description of a code object's architecture; nil: no architecture has its
// machine.
func describeObject(m *plugin.Manager, o *object.Object) (*sdk.Description, error) {
	a, err := m.ForObject(plugin.FileOf(o))
	switch {
	case errors.Is(err, plugin.ErrNoArchitecture):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return a.Description(), nil
}

// NewCallFrames returns the call frame information of a code object at a path. The
// description is of its architecture; nil: no architecture has claimed it. For dialect see
// NewObjectExpressions.
func NewCallFrames(path string, o *object.Object, d *sdk.Description, dialect *locexpr.Dialect) (*CallFrames, error) {
	expressions, err := NewObjectExpressions(o, d, dialect)
	if err != nil {
		return nil, err
	}
	c := &CallFrames{
		File: path, Entries: listing.CallFrameEntries(o), SFrame: listing.SFrameEntries(o), Unwind: listing.UnwindEntries(o), Compact: listing.CompactEntries(o),
		Expression: expressions.Text, Forbidden: expressions.forbidden,
		Register: registerNames(o, d), Space: SpaceNames(d),
	}
	if d != nil {
		c.HasSpace = func(space locexpr.AddressSpace) bool { _, ok := d.Space(space); return ok }
	}
	return c, nil
}

// objectNames are the names of registers and address spaces of an object.
func objectNames(o *object.Object, d *sdk.Description) sdk.Names {
	lanes := uint32(0)
	if p, ok := d.ObjectProcessor(o.Flags()); ok {
		lanes = p.Lanes[0]
	}
	return d.Names(lanes)
}

// registerNames returns the function that names the columns of an object's rows. A register
// without a name has its number, which is rN on an unknown machine.
func registerNames(o *object.Object, d *sdk.Description) func(uint64) string {
	if d == nil {
		return func(n uint64) string { return fmt.Sprintf("r%d", n) }
	}
	names, known := objectNames(o, d), map[uint64]string{}
	return func(n uint64) string {
		name, ok := known[n]
		if ok {
			return name
		}
		if name, ok = names.RegisterName(n); !ok {
			return fmt.Sprint(n)
		}
		known[n] = name
		return name
	}
}

// SpaceNames returns the function that names address spaces. A space without a name has its
// number.
func SpaceNames(d *sdk.Description) func(locexpr.AddressSpace) string {
	return func(space locexpr.AddressSpace) string {
		if d != nil {
			if info, ok := d.Space(space); ok {
				return info.Name
			}
		}
		return fmt.Sprint(uint64(space))
	}
}

// ObjectExpressions writes the expressions of a code object as a stream.
type ObjectExpressions struct {
	// List is the expressions in the order in which they are written. An error is about one
	// entry, and the entries after it follow.
	List iter.Seq2[listing.Expression, error]

	options  locexpr.TextOptions
	dialects []*locexpr.Dialect
}

// NewObjectExpressions returns the expressions of an object, read in a dialect. With nil it
// tries the architecture's dialects one after the other for each expression, since a file
// does not name its dialect.
func NewObjectExpressions(o *object.Object, d *sdk.Description, dialect *locexpr.Dialect) (*ObjectExpressions, error) {
	r := &ObjectExpressions{
		List:     listing.Expressions(o, d),
		options:  locexpr.TextOptions{AddressSize: o.AddressSize(), Order: locexpr.LittleEndian},
		dialects: []*locexpr.Dialect{locexpr.DWARF5},
	}
	if o.ByteOrder() == binary.BigEndian {
		r.options.Order = locexpr.BigEndian
	}
	if d != nil {
		r.options.Names = objectNames(o, d)
	}
	switch {
	case dialect != nil:
		r.dialects = []*locexpr.Dialect{dialect}
	case d != nil && len(d.Dialects) > 0:
		r.dialects = r.dialects[:0]
		for i := range d.Dialects {
			table, err := d.Dialects[i].Table()
			if err != nil {
				return nil, err
			}
			r.dialects = append(r.dialects, table)
		}
	}
	return r, nil
}

// Text is an expression as text.
func (r *ObjectExpressions) Text(expr []byte) string {
	return locexpr.FormatText(expr, r.optionsOf(expr))
}

// forbidden is the error of an operation that call frame information must not use.
func (r *ObjectExpressions) forbidden(expr []byte) error {
	o := r.optionsOf(expr)
	return locexpr.CheckCFI(expr, o.Dialect, o.AddressSize, o.Order)
}

// optionsOf has the first dialect in which an expression can be read.
func (r *ObjectExpressions) optionsOf(expr []byte) locexpr.TextOptions {
	options := r.options
	options.Dialect = r.dialects[0]
	for _, dialect := range r.dialects {
		if decodes(expr, dialect, options) {
			options.Dialect = dialect
			break
		}
	}
	return options
}

// decodes reports whether an expression can be read in a dialect.
func decodes(expr []byte, dialect *locexpr.Dialect, o locexpr.TextOptions) bool {
	for _, err := range locexpr.Decode(expr, dialect, o.AddressSize, o.Order) {
		if err != nil {
			return false
		}
	}
	return true
}
