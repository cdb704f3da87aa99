// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	// childrenEvery is how many moments pass before new children are looked for.
	childrenEvery = 4
	// maxProcesses bounds the processes of a recording.
	maxProcesses = 1024
)

// addChildren adds the children of the recorded processes.
func (r *session) addChildren() {
	for i := 0; i < len(r.processes); i++ { // more come while it goes on
		for _, child := range childrenOf(r.processes[i].pid) {
			isKnown := slices.ContainsFunc(r.processes, func(p *recorder) bool { return p.pid == child })
			if isKnown || len(r.processes) >= maxProcesses {
				continue
			}
			// One that has just ended, or is not executed yet, has nothing to record.
			_, _ = r.add(child)
		}
	}
}

// childrenOf returns the children of a process, as far as the kernel lists them
// (CONFIG_PROC_CHILDREN).
func childrenOf(pid int) (list []int) {
	threads, _ := threadsOf(pid)
	for _, id := range threads {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, id))
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(word); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}
