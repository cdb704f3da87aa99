// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// processName returns the name of a living process; "" where it cannot be read.
func processName(pid int) string { return nameIn(filepath.Join("/proc", strconv.Itoa(pid))) }

// nameIn returns the name in a folder of /proc, of a process or of a thread.
func nameIn(dir string) string {
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(name), "\n")
}

// ownProcesses returns the processes in a folder like /proc that this user may look at. Threads
// of the kernel and processes that have ended have no stacks and no executable, and are left out.
func ownProcesses(dir string) []named {
	self := strconv.Itoa(os.Getpid())
	return processes(dir, func(id string) bool {
		return id != self && mayTrace(filepath.Join(dir, id))
	})
}

// processes returns the processes or threads in a folder of /proc that are wanted, in the order
// of their IDs, as far as there is time.
func processes(dir string, isWanted func(id string) bool) (list []named) {
	begun := time.Now()
	folder, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	ids := make([]int, 0, len(names))
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		text := strconv.Itoa(id)
		if time.Since(begun) > maxCompletion || len(list) == maxOffered {
			break
		}
		if name := nameIn(filepath.Join(dir, text)); name != "" && isWanted(text) {
			list = append(list, named{text, name})
		}
	}
	return list
}

// mayTrace reports whether this user may look at the process of a folder of /proc: only then is the
// link to its executable readable.
func mayTrace(dir string) bool {
	_, err := os.Readlink(filepath.Join(dir, "exe"))
	return err == nil
}
