// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// A process that used other processors may have a second core: its runtime library writes one
// with the state of the processors, beside the kernel's core of the process.

// addDevices adds the memory and the notes of the second core: that of options, or a core of
// the same process that lies beside the core under the runtime library's name for it.
func (c *Core) addDevices(notes []note, options Options) []note {
	path, isUserProvided := options.Devices, options.Devices != ""
	if !isUserProvided {
		if path = c.devicesPath(notes); path == "" {
			return notes
		}
	}
	m, packing, err := options.mapDevices(path)
	if err != nil {
		c.problem("%v: no state of other processors is read from it", err)
		return notes
	}
	for _, p := range packing {
		c.problem("%s", p)
	}
	c.beside = append(c.beside, m)
	h, problems, err := readHeader(m.Data())
	switch {
	case err != nil && isUserProvided:
		c.problem("%s, given as the core of other processors: %v", path, err)
		return notes
	case err != nil:
		return notes // an unrelated file of that name
	case hasSections(&h, m.Data()):
		return notes // it shares no memory with the process: package joined makes one target of both
	case !isGraphics(&h):
		if isUserProvided {
			c.problem("%s, given as the core of other processors: it is one of machine %s: it is not used", path, elf.Machine(h.machine))
		}
		return notes
	case h.numbers != c.header.numbers:
		c.problem("%s: its class or byte order is not that of the core: it is not used", path)
		return notes
	}
	memory, more := newMemory(m.Data(), &h)
	if stray, isStray := c.strayAddress(memory); isStray {
		what := fmt.Sprintf("%s: its memory at address %#x is not mapped in the process of the core", path, stray)
		if !isUserProvided {
			c.problem("%s: it is not used; --gpu-core uses it", what)
			return notes
		}
		c.problem("%s: it may be of another one", what)
	}
	found, others := readNotes(m.Data(), &h)
	isOfAMD := elf.Machine(h.machine) == elf.EM_AMDGPU
	if !slices.ContainsFunc(found, func(nt note) bool { return !isOfAMD || nt.owner == gpuOwner }) {
		others = append(others, "it has no note with the state of other processors")
	}
	for _, p := range append(append(problems, more...), others...) {
		c.problem("%s: %s", path, p)
	}
	c.memory.devices = memory
	c.imageBudget = min(c.imageBudget+uint64(len(m.Data())), maxImages)
	return append(notes, found...)
}

func (o *Options) mapDevices(path string) (m *object.Mapping, problems []string, err error) {
	if o.Map != nil {
		return o.Map(path)
	}
	m, err = object.Map(path)
	return m, nil, err
}

// devicesPath returns the path of the second core beside the core, by its name: the runtime
// library of ROCm names it after the core or the process. It is "" if there is none, or the
// core itself has that state.
func (c *Core) devicesPath(notes []note) string {
	if c.mapping == nil || c.isGraphics() {
		return ""
	}
	pid := ""
	for _, nt := range notes {
		switch {
		case nt.owner == gpuOwner:
			return ""
		case nt.owner == coreOwner && nt.typ == ntPRPSINFO && pid == "":
			if n, _, _ := c.header.readInfo(nt.data); n > 0 {
				pid = strconv.FormatInt(n, 10)
			}
		}
	}
	names := []string{c.path + ".gpu"}
	if pid != "" {
		base := filepath.Join(filepath.Dir(c.path), "gpucore."+pid)
		names = append(names, base, base+".gpu")
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// HostCore returns the path of a process's core that lies beside the core of its other
// processors, by its name; "" if there is none, or path is no core of other processors.
func HostCore(path string) string {
	if !isCoreFile(path, isGraphics) {
		return ""
	}
	name, isBeside := strings.CutSuffix(path, ".gpu")
	var names []string
	if isBeside {
		names = append(names, name)
	}
	dir, base := filepath.Split(name)
	if pid, ok := strings.CutPrefix(base, "gpucore."); ok {
		names = append(names, filepath.Join(dir, "core."+pid), filepath.Join(dir, "core"))
	}
	for _, name := range names {
		if isCoreFile(name, func(h *coreHeader) bool { return !isGraphics(h) }) {
			return name
		}
	}
	return ""
}

// isCoreFile reports whether a file is a core of a kind. As every core is tested for being one
// of other processors, the program headers (there may be 65,536) are read only after isKind.
func isCoreFile(path string, isKind func(h *coreHeader) bool) (ok bool) {
	m, err := object.Map(path)
	if err != nil {
		return false
	}
	defer m.Close()
	// A file that is truncated meanwhile is no core.
	err = object.Guard(func() error {
		h, err := readStart(m.Data())
		if ok = err == nil && isKind(&h); ok {
			_, err = h.readPrograms(m.Data())
		}
		return err
	})
	return ok && err == nil
}

// strayAddress returns an address of a second core's memory that the process does not have
// mapped. The kernel writes a program header for each mapping, also if it leaves out the
// memory, as it does for mappings of devices.
func (c *Core) strayAddress(devices *memory) (address uint64, isStray bool) {
	for i := range devices.segments {
		if s := &devices.segments[i]; c.memory.segment(s.start) == nil {
			return s.start, true
		}
	}
	return 0, false
}
