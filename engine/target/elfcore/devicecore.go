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

// This file finds the second core of a process that used other processors: its
// runtime library writes one with what they had, and the kernel the one of the
// process.

// addDevices adds the memory and the notes of the second core: the one that was
// given, or the one that lies beside the core under the name that the runtime
// library gives it, and is of the same process.
func (c *Core) addDevices(notes []note, options Options) []note {
	path, isGiven := options.Devices, options.Devices != ""
	if !isGiven {
		if path = c.besideName(notes); path == "" {
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
	case err != nil && isGiven:
		c.problem("%s, given as the core of other processors: %v", path, err)
		return notes
	case err != nil:
		return notes // it is another thing of that name
	case !isGraphics(&h):
		if isGiven {
			c.problem("%s, given as the core of other processors: it is one of machine %s: it is not used", path, elf.Machine(h.machine))
		}
		return notes
	case h.numbers != c.header.numbers:
		c.problem("%s: its class or byte order is not that of the core: it is not used", path)
		return notes
	}
	memory, more := newMemory(m.Data(), &h)
	if stray, isStray := c.strayOf(memory); isStray {
		what := fmt.Sprintf("%s: its memory at address %#x is not mapped in the process of the core", path, stray)
		if !isGiven {
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

// besideName is the path of the file beside the core that has the name of its second
// core; "" where there is none, or the core has that state itself. The runtime library
// of ROCm names it after the core or the process.
func (c *Core) besideName(notes []note) string {
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

// HostCore is the path of the core beside one of other processors that has the process,
// by its name; "" where there is none, or the file is no such core.
func HostCore(path string) string {
	if !isCoreOf(path, isGraphics) {
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
		if isCoreOf(name, func(h *coreHeader) bool { return !isGraphics(h) }) {
			return name
		}
	}
	return ""
}

// isCoreOf says whether a file is a core of some kind. Every core is asked first whether it
// is one of other processors: its program headers, of which it may have 65,536, are looked
// at only where it is.
func isCoreOf(path string, isKind func(h *coreHeader) bool) (is bool) {
	m, err := object.Map(path)
	if err != nil {
		return false
	}
	defer m.Close()
	// A file that is cut meanwhile is none.
	err = object.Guard(func() error {
		h, err := readStart(m.Data())
		if is = err == nil && isKind(&h); is {
			_, err = h.readPrograms(m.Data())
		}
		return err
	})
	return is && err == nil
}

// strayOf is an address of a second core's memory that the process does not have
// mapped. The kernel writes a program header for each mapping, also for those whose
// memory it leaves out, as it does for that of devices.
func (c *Core) strayOf(devices *memory) (address uint64, isStray bool) {
	for i := range devices.segments {
		if s := &devices.segments[i]; c.memory.segment(s.start) == nil {
			return s.start, true
		}
	}
	return 0, false
}
