// SPDX-License-Identifier: Apache-2.0

// Package processes reads /proc about processes that commands of this module start.
package processes

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Stat is the state of a process in /proc/PID/stat.
type Stat struct {
	State  string
	Parent int
	CPU    time.Duration // of the children that ended, too
}

// clockTick is the unit of times in /proc/PID/stat on Linux: USER_HZ is 100.
const clockTick = 10 * time.Millisecond

// StatOf reads it.
func StatOf(pid int) (s Stat, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	// The name, which is in brackets, may have blanks.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 15 {
		return s, fmt.Errorf("/proc/%d/stat has %d fields, expected 15 or more", pid, len(fields))
	}
	s.State = fields[0]
	s.Parent, _ = strconv.Atoi(fields[1]) // the kernel writes numbers
	for _, text := range fields[11:15] {
		n, _ := strconv.ParseInt(text, 10, 64)
		s.CPU += time.Duration(n) * clockTick
	}
	return s, nil
}

// Of are a process and its descendants, itself first.
func Of(pid int) []int {
	children := map[int][]int{}
	for _, pid := range all() {
		if p, err := StatOf(pid); err == nil && p.State != "Z" {
			children[p.Parent] = append(children[p.Parent], pid)
		}
	}
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// all are the processes that there are.
func all() (list []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// Executing lists the processes of an executable. The kernel tells this of the user's own
// processes.
func Executing(path string) (list []int) {
	for _, pid := range all() {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == path {
			list = append(list, pid)
		}
	}
	return list
}

// CPU is the processors' time of a process and its descendants, those that ended included.
func CPU(pid int) (sum time.Duration) {
	for _, pid := range Of(pid) {
		if s, err := StatOf(pid); err == nil { // it may have ended
			sum += s.CPU
		}
	}
	return sum
}

// IsGone says that a process has ended, at the latest a moment later: plugins end when their
// worker has.
func IsGone(pid int) bool {
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if p, err := StatOf(pid); err != nil || p.State == "Z" {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
