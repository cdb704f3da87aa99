package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// This file has what a recording has in common with the machine that it is read
// on: more often than not it was made there.

// hostMachine is what uname -m says.
func hostMachine() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}

// osRelease is what uname -r says.
func osRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

var errNoVDSO = errors.New("this process has none")

const maxOwnVDSO = 1 << 20

// ownVDSO reads the vDSO of this process from its memory.
func ownVDSO() ([]byte, error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasSuffix(line, vdsoName) {
			continue
		}
		first, last, _ := strings.Cut(strings.Fields(line)[0], "-")
		start, err := strconv.ParseInt(first, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/self/maps: %w", err)
		}
		end, err := strconv.ParseInt(last, 16, 64)
		if err != nil || end <= start || end-start > maxOwnVDSO {
			return nil, fmt.Errorf("/proc/self/maps: %q, expected a range of at most %d bytes", line, maxOwnVDSO)
		}
		memory, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil, err
		}
		defer memory.Close()
		return io.ReadAll(io.NewSectionReader(memory, start, end-start))
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return nil, errNoVDSO
}

// ownFile says whether a file is there and of this user or of root.
func ownFile(name string) bool {
	var st unix.Stat_t
	return unix.Stat(name, &st) == nil && (st.Uid == 0 || int(st.Uid) == os.Geteuid())
}
