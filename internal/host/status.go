// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ProcessStatus is a part of /proc/PID/status (proc_pid_status(5)).
type ProcessStatus struct {
	Parent int // the ID of its parent, as this process sees it; 0: it is not seen
	User   int // whose files it makes
	// IDs are its IDs in the PID namespaces that it is in, from this process's to its own.
	IDs []int
}

// Own returns the ID of the process in its own PID namespace; 0 where it is not known.
func (s *ProcessStatus) Own() int {
	if len(s.IDs) == 0 {
		return 0
	}
	return s.IDs[len(s.IDs)-1]
}

// ReadProcessStatus reads the status of a living process of this machine.
func ReadProcessStatus(pid int) (s ProcessStatus, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return s, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), ":")
		var numbers []int
		switch name {
		case "PPid", "Uid", "NSpid":
			for _, field := range strings.Fields(text) {
				n, err := strconv.Atoi(field)
				if err != nil {
					return s, fmt.Errorf("/proc/%d/status: %q: %w", pid, lines.Text(), err)
				}
				numbers = append(numbers, n)
			}
		}
		switch {
		case len(numbers) == 0:
		case name == "PPid":
			s.Parent = numbers[0]
		case name == "Uid":
			s.User = numbers[len(numbers)-1]
		case name == "NSpid":
			s.IDs = numbers
		}
	}
	return s, lines.Err()
}
