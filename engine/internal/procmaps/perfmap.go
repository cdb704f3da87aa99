// SPDX-License-Identifier: Apache-2.0

package procmaps

import (
	"fmt"
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/internal/host"
)

// OpenPerfMap opens the names of JIT code that the runtime of a live process wrote: the
// functions of /tmp/perf-PID.map, by the process's ID in its own namespace, in its own
// /tmp; nil where there is none. Everyone may write to /tmp: the file has to be root's,
// this user's, or user's, the user of the process.
func OpenPerfMap(pid int, user uint32) (m *perfdata.PerfMap, problems []string) {
	for _, name := range perfMaps(pid) {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if owner, _, ok := host.Owner(info); !ok || owner != int(user) && !host.IsOwn(info) {
			continue
		}
		m, err := perfdata.OpenPerfMap(name)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		return m, append(problems, m.Problems()...)
	}
	return nil, problems
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
