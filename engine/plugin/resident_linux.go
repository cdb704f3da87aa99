// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// usage has the amounts that a process uses and that are bounded.
type usage struct{ memory, threads uint64 }

// ResidentMemory is the number of bytes of a process's private memory, swapped out or
// not; 0 where the kernel does not tell. Files that it maps are not counted.
func ResidentMemory(pid int) uint64 { return usageOf(pid).memory }

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
