// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// processesOf lists the processes of a plugin's session, and the processes that any of
// them has started, except zombies.
func processesOf(plugin int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parents := map[int]int{}
	var family []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == plugin {
			continue
		}
		state, parent, session, err := processStatus(pid)
		if err != nil || state == 'Z' || state == 'X' {
			continue
		}
		parents[pid] = parent
		if session == plugin {
			family = append(family, pid)
		}
	}
	for pid := range parents {
		ancestor := pid
		for range parents { // at most one step for each process
			if ancestor = parents[ancestor]; ancestor == plugin || ancestor == 0 {
				break
			}
		}
		if _, _, session, err := processStatus(pid); ancestor == plugin && err == nil && session != plugin {
			family = append(family, pid)
		}
	}
	return family
}

// processStatus reads the state, the parent and the session of a process. Its name may
// have any characters, and ends with the last parenthesis.
func processStatus(pid int) (state byte, parent, session int, err error) {
	return readStatus(fmt.Sprintf("/proc/%d/stat", pid))
}

// readStatus reads the status of a process, or of a thread.
func readStatus(path string) (state byte, parent, session int, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, 0, err
	}
	_, err = fmt.Sscanf(string(b[bytes.LastIndexByte(b, ')')+1:]), " %c %d %d %d", &state, &parent, new(int), &session)
	return state, parent, session, err
}

// isRunnable reports whether a thread of a process runs, or waits for a processor.
func isRunnable(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(threads, func(path string) bool {
		state, _, _, err := readStatus(path)
		return err == nil && state == 'R'
	})
}
