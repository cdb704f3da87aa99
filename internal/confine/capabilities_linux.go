// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// dropCapabilities makes the exec lose all capabilities, root's too: an exec gives at
// most the bounding set. Where that set can be emptied they stay until the exec, because
// the executable may be accessible only with them.
func dropCapabilities() error {
	var head = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // a set of 64 bits is two of 32
	if err := unix.Capget(&head, &data[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	bounded := true
	for c := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // past the kernel's last capability
		}
		if err != nil {
			bounded = false
			break
		}
	}
	// A failure means a kernel without ambient capabilities.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for i := range data {
		data[i].Inheritable = 0
		if !bounded {
			data[i].Permitted, data[i].Effective = 0, 0
		}
	}
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}
