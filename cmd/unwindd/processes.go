// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processName returns the name of a living process; "" where it cannot be read.
func processName(pid int) string { return commOf(fmt.Sprintf("/proc/%d", pid)) }

// commOf returns the name in a folder of /proc, of a process or of a thread.
func commOf(dir string) string {
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(name), "\n")
}

// named is a process or a thread with its name.
type named struct {
	id   int
	name string
}

// namedIn returns the processes, or threads, of a folder of /proc. Processes without an
// executable are threads of the kernel, which have no stacks, and are left out.
func namedIn(dir string) (list []named) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil || id == os.Getpid() {
			continue
		}
		own := filepath.Join(dir, e.Name())
		if isKernels(own) {
			continue
		}
		if name := commOf(own); name != "" {
			list = append(list, named{id, name})
		}
	}
	return list
}

// isKernels reports whether a folder of /proc is that of a thread of the kernel, or of a process
// that has ended: neither has mapped memory.
func isKernels(dir string) bool {
	size, err := os.ReadFile(filepath.Join(dir, "statm"))
	return err == nil && strings.HasPrefix(string(size), "0 ")
}
