// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// usage has the amounts that a process uses and that are bounded.
type usage struct{ memory, threads uint64 }

// ResidentMemory is the number of bytes of a process's private memory, swapped out or
// not; 0 where the kernel does not tell. Files that it maps are not counted.
func ResidentMemory(pid int) uint64 { return usageOf(pid).memory }

// maxDescendants bounds the processes that DescendantsOf lists.
const maxDescendants = 1 << 12

// DescendantsOf lists the processes that a process has started, and the ones that these have started. A process whose parent has
// ended is not among them.
func DescendantsOf(pid int) (list []int) {
	for rest := []int{pid}; len(rest) > 0 && len(list) < maxDescendants; rest = rest[1:] {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", rest[0]))
		if err != nil || len(threads) == 0 && rest[0] == pid && isAlive(pid) {
			return processesOf(pid) // this kernel has no lists of children
		}
		for _, path := range threads {
			text, _ := os.ReadFile(path) // a thread may have ended
			for field := range bytes.FieldsSeq(text) {
				if child, err := strconv.Atoi(string(field)); err == nil {
					list, rest = append(list, child), append(rest, child)
				}
			}
		}
	}
	return list
}

func isAlive(pid int) bool {
	_, _, _, err := processStatus(pid)
	return err == nil
}

// GroupMemory is the number of bytes of private memory of a process and all its descendants: see ResidentMemory.
func GroupMemory(pid int) uint64 {
	all := ResidentMemory(pid)
	for _, child := range DescendantsOf(pid) {
		all += ResidentMemory(child)
	}
	return all
}

// usageOf reads the usage of a process; 0 where the kernel does not tell.
func usageOf(pid int) (u usage) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}
	}
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		number, _, _ := bytes.Cut(bytes.TrimSpace(value), []byte(" "))
		switch string(name) {
		case "RssAnon", "RssShmem", "VmSwap":
			n, err := strconv.ParseUint(string(number), 10, 54)
			if err != nil {
				return usage{}
			}
			u.memory += n << 10 // in kibibytes
		case "Threads":
			u.threads, _ = strconv.ParseUint(string(number), 10, 32) // 0: not known
		}
	}
	return u
}
