// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/internal/host"
)

// codeMaker is a process with the memory in which its runtime may have c code. Both
// recording.mapping and, while frames are named, the only goroutine protect it.
type codeMaker struct {
	pid       int
	root      string // of recording.roots
	ancestors []int  // as of perfdata.Space
	namespace uint64 // likewise
	memory    []*perfdata.Mapping
	files     []*perfdata.Mapping // executable ones, which tell that a living process is this one
	seen      map[*perfdata.Mapping]bool
	hasDump   bool // it mapped the dump of a runtime
	// places has the indices of memory by address, up to the length placed.
	places   ranges.Flat
	placed   int
	isLooked bool // live is set
	live     host.ProcessStatus
	isLive   bool
}

// maxCheckedFiles is how many mappings of files a living process is known by: it has to have most
// of them, since libraries may be unloaded.
const maxCheckedFiles = 8

// makerOf returns the process of a version of its mappings.
func (r *recording) makerOf(v *perfdata.Space) *codeMaker {
	c := r.generated.makers[v.PID]
	if c == nil {
		c = &codeMaker{pid: v.PID, seen: map[*perfdata.Mapping]bool{}}
		r.generated.makers[v.PID] = c
	}
	c.root = v.Root
	if len(v.Ancestors) > 0 { // samples before an exec keep their names
		c.ancestors = v.Ancestors
	}
	if v.Namespace != 0 {
		c.namespace = v.Namespace
	}
	return c
}

// addMemory adds executable memory without a file.
func (c *codeMaker) addMemory(m *perfdata.Mapping) {
	if !c.seen[m] {
		c.seen[m] = true
		c.memory = append(c.memory, m)
	}
}

// addFile adds an executable mapping of a file.
func (c *codeMaker) addFile(m *perfdata.Mapping) {
	if len(c.files) < maxCheckedFiles && !c.seen[m] {
		c.seen[m] = true
		c.files = append(c.files, m)
	}
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
	if !c.isAlive() || c.live.Parent <= 1 {
		return nil
	}
	p := &codeMaker{pid: c.live.Parent, root: c.root, memory: c.memory, files: c.files}
	if !p.isAlive() {
		return nil
	}
	return p
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
		if m.Inode != 0 && inode == m.Inode || m.Inode == 0 && strings.HasSuffix(lines.Text(), m.Path) {
			delete(missing, start)
		}
	}
	return 2*len(missing) < len(files)
}
