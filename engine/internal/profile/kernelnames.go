// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/kallsyms"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
)

// This file finds the names of the kernel's functions: in the file that the user names, else in
// the recording's directory, else in the running kernel where it is the recorded one, else in
// perf's caches, else in an image of the kernel with its build ID (vmlinux). /boot/System.map is not among them: nothing in it tells of which build it is.

// kernelNames are the names of the kernel's code.
type kernelNames struct {
	table *kallsyms.Table // nil: there are none
	// moved is how far the recorded kernel is from the addresses of the table: it begins at
	// another address after each boot.
	moved uint64
	// isOfBoot: modules are where the table has them, as it is of the recorded boot.
	isOfBoot bool
	starts   map[string]uint64 // of modules, as far as they were needed
	// problem is why there are none, with what would give them.
	problem string
}

// kernelSource is a file with names of the kernel.
type kernelSource struct {
	path string
	// isOfBoot: it has the addresses of the boot that was recorded.
	isOfBoot bool
	// isOwn: it is the running kernel's.
	isOwn bool
}

const (
	ownKallsyms    = "/proc/kallsyms"
	ownKernelNotes = "/sys/kernel/notes"
)

// kernelNames returns the names for the kernel's mappings. provided are the names of the
// file that the user named; nil: none was.
func (r *recording) kernelNames(provided *kallsyms.Table, kernel *perfdata.Space) *kernelNames {
	if provided == nil {
		provided = r.recordedKernelNames()
	}
	if provided == nil && r.file != nil {
		provided = r.simpleperfKernelNames()
	}
	if provided != nil {
		moved, known := kernelMoved(provided, kernel)
		if !known {
			r.problem("%s has no symbol by which the kernel's address would be known: the kernel's code is not named", provided.Path())
			return &kernelNames{}
		}
		return &kernelNames{table: provided, moved: moved, isOfBoot: true}
	}
	names := &kernelNames{}
	id := r.kernelID(kernel)
	sources, reason := r.kernelSources(id)
	for _, s := range sources {
		table, err := r.readKernelNames(&s)
		switch {
		case err == nil:
		case s.isOwn && errors.Is(err, kallsyms.ErrHidden):
			reason = s.path + " is of the recorded kernel, but shows its addresses to root only: run unwindd as root, or set kernel.kptr_restrict to 0"
			continue
		default:
			reason = fmt.Sprintf("%v", err)
			continue
		}
		moved, known := kernelMoved(table, kernel)
		if known && hasKernelAddress(kernel) {
			names.table, names.moved, names.isOfBoot = table, moved, s.isOfBoot
			return names
		}
		reason = s.path + " is of the recorded kernel, but the recording does not say where that was: perf must record as root, or with kernel.kptr_restrict=0"
	}
	if table := r.imageNames(id); table != nil {
		if moved, known := kernelMoved(table, kernel); known && hasKernelAddress(kernel) {
			names.table, names.moved = table, moved
			return names
		}
	}
	names.problem = reason
	return names
}

// readKernelNames reads a file with names. The running kernel's are read once.
func (r *recording) readKernelNames(s *kernelSource) (*kallsyms.Table, error) {
	if s.isOwn {
		return r.ownKernel()
	}
	return openKernelNames(s.path)
}

// prepareKernel begins to read the running kernel's names, as samples are walked, which takes as
// long as walking thousands of them.
func (b *profileBuilder) prepareKernel() {
	r := b.recording
	if b.preparesKernel || r.maker.Shared.Options().NoSymbols {
		return
	}
	b.preparesKernel = true
	if id := r.kernelID(nil); id != nil && !b.hasKernelNames && bytes.Equal(id, r.ownKernelID()) {
		go func() { _, _ = r.ownKernel() }()
	}
}

// kernelSources returns the files that may have the names of the kernel of a build ID, the best
// first, and why there are none with what would give them.
func (r *recording) kernelSources(id []byte) (list []kernelSource, reason string) {
	own := r.ownKernelID()
	isBoot := own != nil && r.isOfThisHost() && r.isOfThisBoot()
	isOwn := own != nil && (bytes.Equal(id, own) || len(id) == 0 && isBoot)
	if isOwn {
		list = append(list, kernelSource{ownKallsyms, isBoot, true})
	}
	for file := range r.finder.CachedKallsyms(id) {
		list = append(list, kernelSource{path: file})
	}
	const give = "give a copy of the /proc/kallsyms of that boot, made by root, with --kallsyms FILE"
	switch {
	case len(list) > 0:
	case len(id) == 0 || r.finder.IsUnseen:
		reason = give
	case own != nil:
		reason = fmt.Sprintf("this machine runs another kernel, and no cache of perf has build ID %x: %s, or the other machine's cache (perf archive, or its ~/.debug) with --buildid-dir DIR", id, give)
	default:
		reason = fmt.Sprintf("no cache of perf has build ID %x: %s, or the other machine's cache (perf archive, or its ~/.debug) with --buildid-dir DIR", id, give)
	}
	return list, reason
}

// isOfThisHost reports whether the recording was made on a machine of this one's name.
func (r *recording) isOfThisHost() bool {
	name, err := os.Hostname()
	return err == nil && name == r.file.Features().Hostname
}

// ownKernelID returns the build ID of the kernel of this machine; nil where its addresses are not
// to be used: readers who do not see this machine could learn them.
func (r *recording) ownKernelID() []byte {
	if r.finder.IsUnseen {
		return nil
	}
	notes, err := os.ReadFile(ownKernelNotes)
	if err != nil {
		return nil
	}
	return noteBuildID(notes)
}

// noteBuildID returns the build ID in ELF notes of this machine's byte order; nil where there is
// none.
func noteBuildID(notes []byte) []byte {
	const header, buildID = 12, 3
	order := binary.NativeEndian
	for len(notes) >= header {
		nameSize, size, kind := uint64(order.Uint32(notes)), uint64(order.Uint32(notes[4:])), order.Uint32(notes[8:])
		start := header + (nameSize+3)&^3
		end := start + size
		if nameSize > uint64(len(notes)) || end > uint64(len(notes)) {
			return nil
		}
		if kind == buildID && string(notes[header:header+nameSize]) == "GNU\x00" {
			return notes[start:end]
		}
		notes = notes[min((end+3)&^3, uint64(len(notes))):]
	}
	return nil
}

// kernelID returns the build ID of the recorded kernel; nil where the recording does not tell it.
func (r *recording) kernelID(kernel *perfdata.Space) []byte {
	for m := range kernel.All() {
		if len(m.BuildID) > 0 && strings.HasPrefix(m.Path, kernelName) {
			return m.BuildID
		}
	}
	list := r.file.Features().BuildIDs
	for i := range list {
		// The path is that of the file that perf took for the kernel's names.
		b := &list[i]
		if b.Mode == perfdata.ModeKernel && (b.Path == kernelName || strings.HasPrefix(b.Path, "[kernel.vmlinux]") || strings.HasPrefix(path.Base(b.Path), "vmlinux")) {
			return b.ID
		}
	}
	return nil
}

// kernelMoved returns how far the kernel of the recording is from that of the names, by the
// address of one symbol, which perf records: 0 where it did not.
func kernelMoved(names *kallsyms.Table, kernel *perfdata.Space) (moved uint64, isKnown bool) {
	for m := range kernel.All() {
		name, ok := strings.CutPrefix(m.Path, kernelName)
		if !ok || name == "" {
			continue
		}
		address, ok := names.Address(name)
		return m.Offset - address, ok
	}
	return 0, true
}

// hasKernelAddress reports whether the recording has the address of a symbol of the kernel.
func hasKernelAddress(kernel *perfdata.Space) bool {
	for m := range kernel.All() {
		if len(m.Path) > len(kernelName) && strings.HasPrefix(m.Path, kernelName) {
			return true
		}
	}
	return false
}

// find returns the name of a function of the kernel, and its start. mapped is the recorded mapping
// of the address, nil where there is none: a module's names are only for that module, which may be
// anywhere after another boot.
func (n *kernelNames) find(lookup, pc uint64, mapped *perfdata.Mapping) (name string, start uint64, ok bool) {
	s, ok := n.table.Find(lookup - n.moved)
	if function, found := n.table.Find(pc - n.moved); found && function.Start == pc-n.moved {
		// Before a function of the kernel there is padding, and no call: it was interrupted at
		// its first instruction.
		s, ok = function, true
	}
	if !ok || s.Module != "" && n.moved != 0 || !n.isThere(s.Module, mapped) {
		return "", 0, false
	}
	return s.Name, s.Start + n.moved, true
}

// isThere reports whether the table's module, "" for the kernel itself, is the mapped one, and at
// the address that it had.
func (n *kernelNames) isThere(module string, mapped *perfdata.Mapping) bool {
	if mapped == nil || strings.HasPrefix(mapped.Path, kernelName) {
		return module == "" || n.isOfBoot
	}
	if module != moduleOfKernel(mapped.Path) || n.isOfBoot {
		return module == moduleOfKernel(mapped.Path)
	}
	start, ok := n.starts[module]
	if !ok {
		if n.starts == nil {
			n.starts = map[string]uint64{}
		}
		start, _ = n.table.ModuleStart(module)
		n.starts[module] = start
	}
	// Modules begin at a page, with their functions.
	const page = 4096
	return start >= mapped.Start && start-mapped.Start < page
}

// moduleOfKernel returns the name of a kernel's module as /proc/kallsyms has it, of its mapping:
// the path of its file, or [NAME].
func moduleOfKernel(mapped string) string {
	name := strings.Trim(path.Base(mapped), "[]")
	name, _, _ = strings.Cut(name, ".ko")
	return strings.ReplaceAll(name, "-", "_")
}
