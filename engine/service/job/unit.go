// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// Unit is a unit of the debugging information of a file, to which an expression refers:
// the file, and an offset in its .debug_info.
type Unit struct {
	Path   string
	offset uint64
	module *target.Module // of the file; nil until it is open
}

// ParseUnit reads FILE:OFFSET, in the words of the flag --unit.
func ParseUnit(text string) (*Unit, error) {
	colon := strings.LastIndexByte(text, ':')
	if colon <= 0 {
		return nil, wrong("--unit %s: expected FILE:OFFSET", text)
	}
	offset, err := strconv.ParseUint(text[colon+1:], 0, 64)
	if err != nil {
		return nil, wrong("--unit %s: offset %q: expected a decimal number, or hex with 0x", text, text[colon+1:])
	}
	return &Unit{Path: text[:colon], offset: offset}, nil
}

// InUnit makes the expression refer to a unit, whose file it opens. The caller closes the
// unit after the evaluation. The formats are those that object.OpenNested takes.
func (x *Expression) InUnit(u *Unit, formats object.Formats) error {
	if err := u.open(x, formats); err != nil {
		return fmt.Errorf("--unit: %w", err)
	}
	x.unit = u
	return nil
}

// Close closes the file.
func (u *Unit) Close() error { return u.module.Object.Close() }

// open opens the file as a module at its own addresses.
func (u *Unit) open(x *Expression, formats object.Formats) error {
	o, err := object.OpenNested(u.Path, formats)
	if err != nil {
		return err
	}
	a, err := x.engine.Plugins().ForMachine(o.ELFMachine())
	if err == nil && a.Description().Name != x.d.Name {
		err = fmt.Errorf("%s: is of %s, expected %s", u.Path, a.Description().Name, x.d.Name)
	}
	if err != nil {
		return errors.Join(err, o.Close())
	}
	u.module = &target.Module{
		Module: trace.Module{
			Path:      u.Path,
			File:      u.Path,
			BuildID:   o.BuildID(),
			Arch:      x.d.Name,
			Processor: x.job.Processor,
		},
		Object: o,
	}
	for _, p := range o.Segments() {
		u.module.Segments = append(u.module.Segments, trace.Segment{
			Address: p.Address, Start: p.Address, Size: p.MemSize, Executable: p.Executable(),
		})
	}
	return nil
}

// surround adds the unit to the surroundings of the expression, and the module of a
// snapshot that has the unit.
func (u *Unit) surround(t *engine.Target, around *walk.Surroundings) error {
	var own *code.Module
	for _, m := range t.Process().Loaded() {
		switch {
		case m.Module == u.module:
			own = m
		case u.isOf(m.Module):
			around.Module = m.Module
			if own = m; !u.isReadFor(m) {
				own = t.Process().AddModule(u.module, nil)
			}
		}
	}
	if own == nil {
		return fmt.Errorf("--unit: %s is the file of no module of %s, by build ID and by path", u.Path, t.Info().Path)
	}
	unit := &walk.InUnit{Code: own.Code}
	around.Unit = unit
	return object.Guard(func() (err error) {
		d := unit.Code.DWARF()
		if d == nil || d.IsGenerated() {
			own.Names(0, false) // which reads the names, and so finds their problems
			why := append(own.Info().Problems, u.Path+": has no debugging information in .debug_info")
			return fmt.Errorf("--unit: %s", why[0])
		}
		if unit.Unit, unit.Function, err = d.UnitAt(u.offset); err != nil {
			return fmt.Errorf("--unit: %w", err)
		}
		return nil
	})
}

// isOf reports whether the file is a module's, or has its debugging information.
func (u *Unit) isOf(m *target.Module) bool {
	if len(m.BuildID) > 0 {
		return bytes.Equal(m.BuildID, u.module.BuildID)
	}
	return isSameFile(u.Path, m.File)
}

// isReadFor reports whether the debugging information of a module is read from the file.
func (u *Unit) isReadFor(m *code.Module) bool {
	if d := m.Code.DWARF(); d == nil || d.IsGenerated() {
		return false
	}
	m.Names(0, false) // which finds the debug file
	if debug := m.Info().DebugFile; debug != "" {
		return isSameFile(u.Path, debug)
	}
	return isSameFile(u.Path, m.Module.File)
}

// isSameFile reports whether two paths are of one file.
func isSameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && x.Mode().IsRegular() && os.SameFile(x, y)
}
