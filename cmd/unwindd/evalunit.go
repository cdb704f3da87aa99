// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

// A unitFlag is what --unit says: a file, and an offset in its .debug_info.
type unitFlag struct {
	path   string
	offset uint64
	module *target.Module // of the file; nil until it is open
}

// parseUnit reads FILE:OFFSET.
func parseUnit(text string) (*unitFlag, error) {
	at := strings.LastIndexByte(text, ':')
	if at <= 0 {
		return nil, fmt.Errorf("--unit %s: expected FILE:OFFSET", text)
	}
	offset, err := strconv.ParseUint(text[at+1:], 0, 64)
	if err != nil {
		return nil, fmt.Errorf("--unit %s: offset %q: expected a decimal number, or hex with 0x", text, text[at+1:])
	}
	return &unitFlag{path: text[:at], offset: offset}, nil
}

// open opens the file, of an architecture, as a module where its own addresses say.
func (u *unitFlag) open(arch, processor string, e *engine.Engine) error {
	o, err := openObject(u.path)
	if err != nil {
		return fmt.Errorf("--unit: %w", err)
	}
	a, err := e.Plugins().ForMachine(o.Machine())
	if err == nil && a.Description().Name != arch {
		err = fmt.Errorf("%s: is of %s, expected %s", u.path, a.Description().Name, arch)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("--unit: %w", err), o.Close())
	}
	u.module = &target.Module{
		Path: u.path, File: u.path, Object: o, BuildID: o.BuildID(), Arch: arch, Processor: processor,
	}
	for _, p := range o.Segments() {
		u.module.Segments = append(u.module.Segments, target.Segment{
			Address: p.Address, Start: p.Address, Size: p.MemSize, Executable: p.Executable(),
		})
	}
	return nil
}

// surround says in which unit the expression is, and for a snapshot which of its modules
// that is about.
func (u *unitFlag) surround(t *engine.Target, around *engine.Surroundings) error {
	var own *code.Module
	for _, m := range t.Loaded() {
		switch {
		case m.Module == u.module:
			own = m
		case u.isOf(m.Module):
			around.Module = m.Module
			if own = m; !u.isReadFor(m) {
				own = t.AddModule(u.module, nil)
			}
		}
	}
	if own == nil {
		return fmt.Errorf("--unit: %s is the file of no module of %s, by build ID and by path", u.path, t.Info().Path)
	}
	in := &engine.InUnit{Code: own.Code}
	around.Unit = in
	return object.Guard(func() (err error) {
		d := in.Code.DWARF()
		if d == nil {
			own.Names(0, false) // a module has problems once its names were asked for
			why := append(own.Info().Problems, u.path+": has no debugging information in .debug_info")
			return fmt.Errorf("--unit: %s", why[0])
		}
		if in.Unit, in.Function, err = d.UnitAt(u.offset); err != nil {
			return fmt.Errorf("--unit: %w", err)
		}
		return nil
	})
}

// isOf says whether the file is that of a module, or has its debugging information.
func (u *unitFlag) isOf(m *target.Module) bool {
	if len(m.BuildID) > 0 {
		return bytes.Equal(m.BuildID, u.module.BuildID)
	}
	return isSameFile(u.path, m.File)
}

// isReadFor says whether the debugging information of a module is read from the file.
func (u *unitFlag) isReadFor(m *code.Module) bool {
	if m.Code.DWARF() == nil {
		return false
	}
	m.Names(0, false) // a module knows its debug file once its names were asked for
	if debug := m.Info().DebugFile; debug != "" {
		return isSameFile(u.path, debug)
	}
	return isSameFile(u.path, m.Module.File)
}

// isSameFile says whether two paths are of one file.
func isSameFile(a, b string) bool {
	x, y := regularFile(a), regularFile(b)
	return x != nil && y != nil && os.SameFile(x, y)
}
