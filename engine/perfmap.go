// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target/perfdata"
)

// readPerfMap reads the names of JIT code that the runtime of a live process wrote: the
// functions of /tmp/perf-PID.map, by the process's ID in its own namespace, in its own
// /tmp. Everyone may write to /tmp: the file has to be root's, this user's, or the user's
// of the process.
func (t *Target) readPerfMap() {
	own := &t.Info().Facts.Process
	pid, user := int(own.ID), *own.User
	for _, name := range perfMaps(pid) {
		var st unix.Stat_t
		if unix.Stat(name, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != 0 && st.Uid != user && int(st.Uid) != os.Geteuid() {
			continue
		}
		m, err := perfdata.OpenPerfMap(name)
		if err != nil {
			t.registered = append(t.registered, err.Error())
			continue
		}
		t.perfMap = m
		t.registered = append(t.registered, m.Problems()...)
		t.nameByMap(m)
		return
	}
}

// nameByMap names code that is in no module by a map.
func (t *Target) nameByMap(m *perfdata.PerfMap) {
	if m == nil {
		return
	}
	t.NameUnplaced(func(address uint64) []symbol.Frame {
		if name, _, _, ok := m.Find(address); ok {
			return []symbol.Frame{{Function: name}} // its start would be an offset in a module
		}
		return nil
	})
}

// perfMaps lists the paths where the map of a process may be, the likely path first.
func perfMaps(pid int) []string {
	own := fmt.Sprint(pid)
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // without it the IDs are the same
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok && len(strings.Fields(ids)) > 0 {
			list := strings.Fields(ids)
			own = list[len(list)-1]
		}
	}
	return []string{fmt.Sprintf("/proc/%d/root/tmp/perf-%s.map", pid, own), fmt.Sprintf("/tmp/perf-%d.map", pid)}
}
