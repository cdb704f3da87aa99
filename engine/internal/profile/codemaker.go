// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/internal/host"
)

// codeMaker is a process with the memory in which its runtime may have made code. Both
// recording.mapping and, while frames are named, the only goroutine protect it.
type codeMaker struct {
	pid       int
	root      string // of recording.roots
	ancestors []int  // as of perfdata.Space
	namespace uint64 // likewise
	memory    []*perfdata.Mapping
	seen      map[*perfdata.Mapping]bool // of memory
	hasDump   bool                       // it mapped the dump of a runtime
	// files are executable mappings in the last version of its mappings, by address: they tell
	// that a living process is this one. isAssumed is true where they are of a process that
	// it forked, because the recording has no mappings of its own.
	files     []*perfdata.Mapping
	isAssumed bool
	// places has the indices of memory by address, up to the length placed.
	places   ranges.Flat
	placed   int
	isLooked bool // live is set
	live     host.ProcessStatus
	isLive   bool
	// forker is the result of forkedBy, where isForked is set.
	forker   *codeMaker
	isForked bool
}

// maxCheckedFiles is how many mappings of files a living process is known by: it has to have most
// of them, since libraries may be unloaded.
const maxCheckedFiles = 8

// makerOf returns the process of a version of its mappings.
func (r *recording) makerOf(v *perfdata.Space) *codeMaker {
	c := r.generated.makers[v.PID]
	if c == nil || c.isAssumed {
		c = &codeMaker{pid: v.PID, seen: map[*perfdata.Mapping]bool{}}
		r.generated.makers[v.PID] = c
	}
	c.root, c.files, c.isLooked, c.isForked = v.Root, nil, false, false
	if len(v.Ancestors) > 0 { // samples before an exec keep their names
		c.ancestors = v.Ancestors
	}
	if v.Namespace != 0 {
		c.namespace = v.Namespace
	}
	return c
}

// addMemory adds executable memory without a file; it returns false where it was added before.
func (c *codeMaker) addMemory(m *perfdata.Mapping) bool {
	if c.seen[m] {
		return false
	}
	c.seen[m] = true
	c.memory = append(c.memory, m)
	return true
}

// addFile adds an executable mapping of a file.
func (c *codeMaker) addFile(m *perfdata.Mapping) {
	if len(c.files) < maxCheckedFiles {
		c.files = append(c.files, m)
	}
}

// ancestor returns a process that another descends from. Without mappings of its own it has the mappings of
// the other, if it lives.
func (r *recording) ancestor(pid int, from *codeMaker) *codeMaker {
	c := r.generated.makers[pid]
	if c == nil {
		c = &codeMaker{pid: pid, root: from.root, seen: map[*perfdata.Mapping]bool{}, files: from.files, namespace: from.namespace, isAssumed: true}
		r.generated.makers[pid] = c
	}
	return c
}

// isForkOf reports whether a process has the files of one that it descends from at the same
// addresses: neither executed another program since it was forked.
func (c *codeMaker) isForkOf(from *codeMaker) bool {
	if from.isAssumed {
		return from.isAlive()
	}
	shared := 0
	for _, m := range c.files {
		if slices.ContainsFunc(from.files, func(other *perfdata.Mapping) bool { return m.Start == other.Start && m.Path == other.Path }) {
			shared++
		}
	}
	return 2*shared > len(c.files)
}

// memoryAt returns the memory at an address that was there last; nil where there is none.
func (c *codeMaker) memoryAt(address uint64) *perfdata.Mapping {
	if c.placed != len(c.memory) {
		list := make([]ranges.Range, len(c.memory))
		for i, m := range c.memory {
			list[i] = ranges.Range{Start: m.Start, End: m.End, Index: int32(i)} //nolint:gosec // fewer than mappings
		}
		c.places, c.placed = ranges.Flatten(list), len(c.memory)
	}
	if i := c.places.At(address); i >= 0 {
		return c.memory[i]
	}
	return nil
}

// fits reports whether a map has a function in the memory of the process.
func (c *codeMaker) fits(m *perfdata.PerfMap) bool {
	for _, memory := range c.memory {
		if m.NamesIn(memory.Start, memory.End) {
			return true
		}
	}
	return false
}

// isAlive reports whether the process lives on this machine: a process with its ID has its files
// where it had them.
func (c *codeMaker) isAlive() bool {
	if !c.isLooked {
		c.isLooked = true
		status, err := host.ReadProcessStatus(c.pid)
		c.live, c.isLive = status, err == nil && hasMapped(c.pid, c.files)
	}
	return c.isLive
}

// forkedBy returns the living parent of a living process, which has the files of it at the same
// addresses: it forked it, and neither executed another program since. It is nil for others.
func (c *codeMaker) forkedBy() *codeMaker {
	if !c.isForked {
		c.isForked, c.forker = true, nil
		if c.isAlive() && c.live.Parent > 1 {
			p := &codeMaker{pid: c.live.Parent, root: c.root, memory: c.memory, files: c.files, isAssumed: true}
			if p.isAlive() {
				c.forker = p
			}
		}
	}
	return c.forker
}

// hasMapped reports whether a living process has mapped most of the files of mappings at their
// addresses.
func hasMapped(pid int, files []*perfdata.Mapping) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil || len(files) == 0 {
		return false
	}
	defer f.Close()
	missing := map[uint64]*perfdata.Mapping{}
	for _, m := range files {
		missing[m.Start] = m
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// START-END PERMISSIONS OFFSET DEVICE INODE PATH
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		first, _, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(first, 16, 64)
		m := missing[start]
		if err != nil || m == nil {
			continue
		}
		inode, _ := strconv.ParseUint(fields[4], 10, 64)
		// Filesystems such as overlayfs have several numbers for a file.
		if m.Inode != 0 && inode == m.Inode || strings.HasSuffix(lines.Text(), m.Path) {
			delete(missing, start)
		}
	}
	return 2*len(missing) < len(files)
}
