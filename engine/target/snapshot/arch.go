// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/jsontext"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxArchs bounds the architectures that are asked for: each may start a
// plugin.
const maxArchs = 64

// An arch is an architecture that the snapshot names.
type arch struct {
	desc           *sdk.Description              // nil: problem says why
	problem        string                        // of every thread of the architecture
	missing        error                         // problem, with what would read it
	isSaid         bool                          // missing is among the snapshot's problems
	names          map[string][]sdk.RegisterInfo // by name and alias in lower case
	dependsOnLanes bool                          // some registers are of threads with a lane count
}

// archs are the architectures that the snapshot names.
type archs struct {
	describe func(name string) (*sdk.Description, error)
	byName   map[string]*arch
	list     []*arch // in the order in which they are named
	unasked  *arch   // stands for all beyond maxArchs
}

const unreadable = "its registers cannot be read: "

// find asks for an architecture, once.
func (l *archs) find(name string) *arch {
	if a := l.byName[name]; a != nil {
		return a
	}
	if len(l.byName) >= maxArchs {
		if l.unasked == nil {
			l.unasked = &arch{}
			l.unasked.lacks(fmt.Errorf("the snapshot names more than %d architectures", maxArchs))
		}
		return l.unasked
	}
	a := &arch{}
	l.byName[name] = a
	l.list = append(l.list, a)
	if name == "" {
		a.lacks(errors.New("it has no arch"))
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
	a.lacks(target.MissingPlugin(err, jsontext.Clip(name)))
	a.problem = unreadable + err.Error()
	return a
}

// lacks says why nothing is known of the architecture.
func (a *arch) lacks(err error) {
	a.missing = fmt.Errorf(unreadable+"%w", err)
	a.problem = a.missing.Error()
}

// index puts the names of the registers in order, aliases included.
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

// named returns the registers of a name, in any case.
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

// hasWidth says whether a value is written at a register's full width.
func hasWidth(info sdk.RegisterInfo, text []byte) bool {
	return IsVector(info) && uint64(len(text))*4 == uint64(info.Bits)
}

// register finds the register of a name. Where registers of several widths
// share it, as those of a machine with waves of two sizes do, it is that of
// the thread's lane count, or the one that the value has the width of.
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

// lanes returns how many lanes a thread has, by which its registers' names are
// looked up: as the thread says itself, as the widths of its vector registers
// say, or as all threads of its processor have; 0 where none of these says it.
func (a *arch) lanes(t *threadEntry) (lanes uint32) {
	if t.lanes != 0 || !a.dependsOnLanes {
		return uint32(t.lanes)
	}
	r := t.registers.Reader()
	// What is wrong with the object is found when its registers are read.
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

// space finds an address space by its name.
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

// isGlobal says whether a name is that of the default address space.
func isGlobal(name string) bool {
	return name == "" || strings.EqualFold(name, "global") || strings.EqualFold(name, "none")
}
