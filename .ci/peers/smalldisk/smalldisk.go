// SPDX-License-Identifier: Apache-2.0

// Package smalldisk gives commands of this module a disk that can be filled.
package smalldisk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Apart executes this program again, with arguments and more variables, in a mount namespace
// of its own.
// Who is not root is one in a user namespace.
func Apart(args []string, variables ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return cmd.Run()
}

// Mount has a folder be a disk of a size, in the mount namespace of this process.
func Mount(dir string, size int64) (unmount func(), err error) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("mounts of its own: %w", err)
	}
	if err := syscall.Mount("small", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		return nil, fmt.Errorf("a small disk: %w", err)
	}
	return func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }, nil
}

// Fill takes all room of a disk for a while.
func Fill(dir string, d time.Duration) {
	path := filepath.Join(dir, "filling")
	f, err := os.Create(path)
	if err != nil {
		return // it is full already
	}
	defer os.Remove(path)
	defer f.Close()
	until := time.Now().Add(d)
	for piece := make([]byte, 64<<10); time.Now().Before(until); {
		if _, err := f.Write(piece); errors.Is(err, syscall.ENOSPC) {
			time.Sleep(2 * time.Millisecond) // what others give back is taken, too
		}
	}
}
