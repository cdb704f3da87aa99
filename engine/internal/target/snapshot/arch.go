// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxArchs bounds the architectures that are looked up: each may start a plugin.
const maxArchs = 64

// arch is an architecture that the snapshot names.
type arch struct {
	desc           *sdk.Description              // nil if unknown; problem says why
	problem        string                        // of every thread of the architecture
	missing        error                         // problem, with the name of the missing plugin
	isReported     bool                          // missing is among the snapshot's problems
	names          map[string][]sdk.RegisterInfo // by name and alias in lower case
	dependsOnLanes bool                          // some registers exist for one lane count only
}

// archs are the architectures that the snapshot names.
type archs struct {
	describe func(name string) (*sdk.Description, error)
	byName   map[string]*arch
	list     []*arch // in the order of the snapshot
	excess   *arch   // in place of all beyond maxArchs
}

const unreadable = "its registers cannot be read: "

// find looks up an architecture, once.
func (l *archs) find(name string) *arch {
	if a := l.byName[name]; a != nil {
		return a
	}
	if len(l.byName) >= maxArchs {
		if l.excess == nil {
			l.excess = &arch{}
			l.excess.setMissing(fmt.Errorf("the snapshot names more than %d architectures", maxArchs))
		}
		return l.excess
	}
	a := &arch{}
	l.byName[name] = a
	l.list = append(l.list, a)
	if name == "" {
		a.setMissing(errors.New("it has no arch"))
		return a
	}
	var d *sdk.Description
	err := errors.New("no architectures were given")
	if l.describe != nil {
		d, err = l.describe(name)
	}
	switch {
	case err != nil:
	case d == nil:
		err = fmt.Errorf("architecture %q has no description", jsontext.Clip(name))
	default:
		a.desc = d
		a.index()
		return a
	}
	a.setMissing(target.MissingPlugin(err, jsontext.Clip(name)))
	a.problem = unreadable + err.Error()
	return a
}

// setMissing records why there is no description of the architecture.
func (a *arch) setMissing(err error) {
	a.missing = fmt.Errorf(unreadable+"%w", err)
	a.problem = a.missing.Error()
}

// index builds names.
func (a *arch) index() {
	a.names = map[string][]sdk.RegisterInfo{}
	total := uint32(0)
	for i := range a.desc.Registers {
		r := &a.desc.Registers[i]
		for j := range r.Count {
			if total++; total > sdk.MaxRegisters {
				return
			}
			info, ok := a.desc.Register(r.First + j)
			if !ok {
				continue
			}
			for _, name := range []string{info.Name, info.Alias} {
				if name = strings.ToLower(name); name == "" {
					continue
				}
				a.names[name] = append(a.names[name], info)
				a.dependsOnLanes = a.dependsOnLanes || info.Lanes != 0
			}
		}
	}
}

// named returns the registers with a name, in upper or lower case.
func (a *arch) named(name []byte) []sdk.RegisterInfo {
	var buf [sdk.MaxName]byte
	if len(name) > len(buf) {
		return nil
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	return a.names[string(buf[:len(name)])]
}

// hasWidth reports whether a value is written at a register's full width.
func hasWidth(info sdk.RegisterInfo, text []byte) bool {
	return IsVector(info) && uint64(len(text))*4 == uint64(info.Bits)
}

// register finds the register with a name. If registers of several widths share it, as on a
// machine with waves of two sizes, the thread's lane count decides, or else the width of the
// value.
func (a *arch) register(name, text []byte, lanes uint32) (info sdk.RegisterInfo, problem string) {
	var first *sdk.RegisterInfo
	count := 0
	list := a.named(name)
	for i := range list {
		if lanes != 0 && list[i].Lanes != 0 && list[i].Lanes != lanes {
			continue
		}
		if hasWidth(list[i], text) {
			return list[i], ""
		}
		if count++; count == 1 {
			first = &list[i]
		}
	}
	switch {
	case count == 1:
		return *first, ""
	case len(list) == 0:
		return info, fmt.Sprintf("register %q is not one of architecture %s", jsontext.Clip(string(name)), a.desc.Name)
	case count == 0:
		return info, fmt.Sprintf("register %s: threads with %d lanes have none", list[0].Name, lanes)
	}
	return info, fmt.Sprintf("register %s: there are %d of that name, and neither lanes nor the width of the value tells which is meant",
		first.Name, count)
}

// lanes returns the lane count by which a thread's register names are looked up: the thread's
// own, that of the widths of its vector registers, or that of all threads of its processor; 0 if
// it is not known.
func (a *arch) lanes(t *threadEntry) (lanes uint32) {
	if t.lanes != 0 || !a.dependsOnLanes {
		return uint32(t.lanes)
	}
	r := t.registers.Reader()
	// Errors in the object are reported when its registers are read.
	several := false
	_ = r.Object(func(name []byte) error {
		text, err := r.Text()
		if err != nil {
			return err
		}
		for _, info := range a.named(name) {
			if info.Lanes != 0 && hasWidth(info, text) {
				several = several || lanes != 0 && lanes != info.Lanes
				lanes = info.Lanes
			}
		}
		return nil
	})
	if several {
		return 0
	}
	if p, ok := a.desc.Processor(t.processor); lanes == 0 && ok && len(p.Lanes) == 1 {
		return p.Lanes[0]
	}
	return lanes
}

// space returns an address space by its name.
func (a *arch) space(name string) (sdk.AddressSpace, bool) {
	if isGlobal(name) {
		return a.desc.Space(locexpr.DefaultSpace)
	}
	for _, s := range a.desc.AddressSpaces {
		if strings.EqualFold(s.Name, name) {
			return s, true
		}
	}
	return sdk.AddressSpace{}, false
}

// isGlobal reports whether a name stands for the default address space.
func isGlobal(name string) bool {
	return name == "" || strings.EqualFold(name, "global") || strings.EqualFold(name, "none")
}
