// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target/perfdata"
)

// A codeSpace is the executable mappings of a process for a time. It does not
// change.
type codeSpace struct {
	code code.Segments
	// anonymous are executable mappings of no file, by address; jit is what a
	// runtime said of the code that it made there, nil where it said nothing.
	anonymous []*perfdata.Mapping
	jit       *jitDump
	mapped    map[uint64]*perfdata.Mapping // what code is of, by start
}

// isCode says whether an address is in an executable mapping.
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

// space is the code of a version of a process; nil where nothing is known.
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
	for m := range v.All() {
		if !m.Executable {
			continue
		}
		if hasNoFile(m.Path) {
			s.anonymous = append(s.anonymous, m)
			continue
		}
		if isJITDump(m.Path) {
			// A runtime maps the first page of its dump to have it in the recording.
			s.jit = r.dump(v.Root, m.Path)
			continue
		}
		s.code = append(s.code, r.segment(v.Root, m))
		s.mapped[m.Start] = m
	}
	s.code.Sort()
	r.spaces[v.Code] = s
	return s
}

// hasNoFile says whether a mapping has no file behind it: what the kernel calls by
// a name of its own, and files that are memory.
func hasNoFile(name string) bool {
	return name == "" || strings.HasPrefix(name, "//anon") || strings.HasPrefix(name, "[") && name != object.VDSOName ||
		strings.HasPrefix(name, "anon_inode:") || strings.HasPrefix(name, "/memfd:") || strings.HasPrefix(name, "/dev/zero") ||
		strings.HasPrefix(name, "/SYSV")
}

// isJITDump says whether a path is one that runtimes give their dumps
// (tools/perf/Documentation/jitdump-specification.txt).
func isJITDump(name string) bool {
	ok, err := path.Match("jit-*.dump", path.Base(name))
	return ok && err == nil
}
