// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ResidentMemory is the number of bytes of a process's private memory, swapped out or
// not; 0 where the kernel does not tell. Files that it maps are not counted.
func ResidentMemory(pid int) uint64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	var total uint64
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "RssAnon", "RssShmem", "VmSwap":
			number, _, _ := bytes.Cut(bytes.TrimSpace(value), []byte(" "))
			n, err := strconv.ParseUint(string(number), 10, 54)
			if err != nil {
				return 0
			}
			total += n << 10 // in kibibytes
		}
	}
	return total
}
