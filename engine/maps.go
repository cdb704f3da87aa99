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

// readPerfMap reads the map of the JIT code of a live process.
func (t *Target) readPerfMap() {
	own := &t.Info().Facts.Process
	m, problems := procmaps.OpenPerfMap(int(own.ID), *own.User)
	t.registered = append(t.registered, problems...)
	t.perfMap = m
	t.nameByMap(m)
}

// nameByMap names code that is in no module by a map.
func (t *Target) nameByMap(m *perfdata.PerfMap) {
	if m == nil {
		return
	}
	t.process.NameUnplaced(func(address uint64) []trace.Symbol {
		if name, _, _, ok := m.Find(address); ok {
			return []trace.Symbol{{Function: name}} // its start would be an offset in a module
		}
		return nil
	})
}
