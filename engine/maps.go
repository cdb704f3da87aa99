// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"io"

	"github.com/unwindd/unwindd/engine/internal/procmaps"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file has the code of a process as Linux and runtimes describe it: its mappings and
// the names of its JIT code.

// LoadMaps sets the modules of a target to the modules in the text of /proc/PID/maps; see
// walk.Process.SetModules. Their files are found as usual. problems lists files that were
// not found or do not fit; the error means that the text is not such a list.
//
// When the process loads a library, its text changes and is loaded again: only new
// modules cost anything.
func (t *Target) LoadMaps(maps io.Reader, arch string) (problems []string, err error) {
	t.loading.Lock()
	defer t.loading.Unlock()
	finder := t.engine.finderOf(t.process.State())
	modules, problems, err := t.maps.Load(maps, arch, &finder)
	if err != nil {
		return nil, err
	}
	t.process.SetModules(modules)
	return problems, nil
}

// readPerfMaps reads the maps of the JIT code of a live process.
func (t *Target) readPerfMaps() {
	own := &t.Info().Facts.Process
	list, problems := procmaps.OpenPerfMaps(int(own.ID))
	t.registered = append(t.registered, problems...)
	t.perfMaps = list
	t.nameByMaps(list)
}

// nameByMaps names code that is in no module by the first of several maps that has it.
func (t *Target) nameByMaps(list []*perfdata.PerfMap) {
	if len(list) == 0 {
		return
	}
	t.process.NameUnplaced(func(address uint64) []trace.Symbol {
		for _, m := range list {
			if name, _, _, ok := m.Find(address); ok {
				return []trace.Symbol{{Function: name}} // its start would be an offset in a module
			}
		}
		return nil
	})
}
