// SPDX-License-Identifier: Apache-2.0

package devicecode

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Open reads what a living process has mapped.
func Open(pid int) (*Process, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no process %d, and no file of that name", pid)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	maps, err := io.ReadAll(io.LimitReader(f, maxMaps))
	if err != nil {
		return nil, err
	}
	p := &Process{PID: pid, Read: func(address uint64, buf []byte) int { return readMemory(pid, address, buf) }}
	return p, p.read(maps, fmt.Sprintf("/proc/%d/root", pid))
}

// readMemory copies memory of a process, as far as it is there.
func readMemory(pid int, address uint64, buf []byte) int {
	if len(buf) == 0 || uint64(uintptr(address)) != address {
		return 0
	}
	local := unix.Iovec{Base: &buf[0]}
	local.SetLen(len(buf))
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(address), Len: len(buf)}}, 0)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
