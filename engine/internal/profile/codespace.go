// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"path"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
)

// codeSpace is the executable mappings of a process for a time. It does not change.
type codeSpace struct {
	code code.Segments
	// anonymous are executable mappings of no file, by address; dumps describe the code that
	// runtimes made there: of the process first, then of those that it was forked by.
	anonymous []*perfdata.Mapping
	dumps     []*jitDump
	mapped    map[uint64]*perfdata.Mapping // the mapping of each module, by start
}

// isCode reports whether an address is in an executable mapping.
func (s *codeSpace) isCode(address uint64) bool {
	return s.code.Find(address) != nil || s.anonymousAt(address) != nil
}

func (s *codeSpace) anonymousAt(address uint64) *perfdata.Mapping {
	i, _ := slices.BinarySearchFunc(s.anonymous, address, func(m *perfdata.Mapping, a uint64) int {
		if m.End <= a {
			return -1
		}
		return 1
	})
	if i == len(s.anonymous) || s.anonymous[i].Start > address {
		return nil
	}
	return s.anonymous[i]
}

// space returns the code of a version of a process; nil where nothing is known.
func (r *recording) space(v *perfdata.Space) *codeSpace {
	if v == nil {
		return nil
	}
	r.mapping.Lock()
	defer r.mapping.Unlock()
	if s, ok := r.spaces[v.Code]; ok {
		return s
	}
	s := &codeSpace{mapped: map[uint64]*perfdata.Mapping{}}
	if v.Root != "" {
		r.roots[v.PID] = v.Root
	}
	maker := r.makerOf(v)
	var inherited []*jitDump
	for m := range v.All() {
		if !m.Executable {
			continue
		}
		if m.HasNoFile() {
			s.anonymous = append(s.anonymous, m)
			maker.addMemory(m)
			continue
		}
		if isJITDump(m.Path) {
			maker.hasDump = true
			// A runtime maps the first page of its dump to have it in the recording.
			switch d := r.dump(maker, m); {
			case d == nil:
			case m.PID == v.PID:
				s.dumps = append(s.dumps, d)
			default:
				inherited = append(inherited, d)
			}
			continue
		}
		maker.addFile(m)
		s.code = append(s.code, r.segment(v.Root, m))
		s.mapped[m.Start] = m
	}
	if s.dumps = append(s.dumps, inherited...); len(s.dumps) == 0 {
		var moved []code.Segment
		moved, s.anonymous = r.movedCode(v, maker, s.anonymous)
		s.code = append(s.code, moved...)
	}
	s.code.Sort()
	r.spaces[v.Code] = s
	return s
}

// movedCode returns the executable mappings without a file that took the place of a part of a
// file's code, where nothing else describes their content; rest are the others.
func (r *recording) movedCode(v *perfdata.Space, maker *codeMaker, list []*perfdata.Mapping) (moved []code.Segment, rest []*perfdata.Mapping) {
	for _, m := range list {
		const writable = 2 // PROT_WRITE
		if m.Replaced == nil || m.Prot&writable != 0 || r.isMapped(maker, m) {
			rest = append(rest, m)
			continue
		}
		s := r.segment(v.Root, m.Replaced)
		if s.Module.Object == nil {
			rest = append(rest, m)
			continue
		}
		s.Address, s.Start, s.End = s.ObjectAddress(m.Start), m.Start, m.End
		r.problem("%s: memory without a file took the place of its code at %#x: that it is the same code is a guess", s.Module.Path, m.Start)
		moved = append(moved, s)
	}
	return moved, rest
}

// isJITDump reports whether a path has the form that runtimes give their dumps
// (tools/perf/Documentation/jitdump-specification.txt).
func isJITDump(name string) bool {
	ok, err := path.Match("jit-*.dump", path.Base(name))
	return ok && err == nil
}
