// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// rootsValue is the value of --root: directories by process ID.
type rootsValue map[int]string

func (r rootsValue) Type() string { return "PID=DIR" }

func (r rootsValue) String() string {
	return strings.Join(r.GetSlice(), ",")
}

// Append adds a directory, as Set does.
func (r rootsValue) Append(text string) error { return r.Set(text) }

// Replace sets the directories.
func (r rootsValue) Replace(texts []string) error {
	clear(r)
	for _, text := range texts {
		if err := r.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice returns the directories in the syntax of the flag.
func (r rootsValue) GetSlice() (texts []string) {
	for _, pid := range slices.Sorted(maps.Keys(r)) {
		texts = append(texts, fmt.Sprintf("%d=%s", pid, r[pid]))
	}
	return texts
}

// Set adds a directory.
func (r rootsValue) Set(text string) error {
	number, dir, ok := strings.Cut(text, "=")
	pid, err := strconv.ParseUint(number, 10, 31)
	if !ok || err != nil || pid == 0 || dir == "" {
		return errors.New("expected the number of a process, =, and a directory")
	}
	if before, isThere := r[int(pid)]; isThere && before != dir {
		return fmt.Errorf("process %d has the root %s already", pid, before)
	}
	r[int(pid)] = dir
	return nil
}
