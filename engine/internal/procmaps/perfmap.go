// SPDX-License-Identifier: Apache-2.0

package procmaps

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/host"
)

// maxForks bounds how many processes that forked another are looked at.
const maxForks = 8

// OpenPerfMaps opens the names of JIT code that the runtimes of a live process wrote: the
// functions of /tmp/perf-PID.map, by the process's ID in its own namespace, in its own /tmp, and
// then of the processes that forked it and have its code still, the nearest first. Everyone may
// write to /tmp: a file has to be root's, this user's, or the user's of its process; problems
// names others.
func OpenPerfMaps(pid int) (list []*perfdata.PerfMap, problems []string) {
	for range maxForks {
		status, err := host.ReadProcessStatus(pid)
		if err != nil {
			return list, problems
		}
		m, found := openPerfMap(pid, &status)
		if problems = append(problems, found...); m != nil {
			list = append(list, m)
		}
		if status.Parent <= 1 || !isForkOf(pid, status.Parent) {
			return list, problems
		}
		pid = status.Parent
	}
	return list, problems
}

// isForkOf reports whether two live processes execute one program at the same addresses: neither
// executed another one since one forked the other.
func isForkOf(pid, parent int) bool {
	own := placesOf(pid)
	return own != "" && own == placesOf(parent)
}

// placesOf returns where a process has its program and its vDSO, which differs from execution to
// execution; "" where that is not known.
func placesOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	program := ""
	for line := range strings.Lines(string(text)) {
		switch {
		case program == "" && strings.Contains(line, "/"):
			program = line
		case program != "" && strings.HasSuffix(line, object.VDSOName+"\n"):
			return program + line
		}
	}
	return ""
}

// openPerfMap opens the map of one process; nil where there is none.
func openPerfMap(pid int, status *host.ProcessStatus) (m *perfdata.PerfMap, problems []string) {
	own := cmp.Or(status.Own(), pid)
	for _, place := range []struct {
		root string
		id   int
	}{{fmt.Sprintf("/proc/%d/root", pid), own}, {"/", pid}} {
		name, _, err := object.Locate(place.root, fmt.Sprintf("/tmp/perf-%d.map", place.id))
		if err == nil {
			err = host.CheckOwner(name, status.User)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, object.ErrNotRegular), errors.Is(err, object.ErrEmpty):
			continue
		case err != nil:
			problems = append(problems, fmt.Sprintf("%v: it is not read, and the code that process %d made is not named by it", err, pid))
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
