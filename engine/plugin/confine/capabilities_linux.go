// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// dropCapabilities makes the exec lose all capabilities, those of root too:
// what an exec gives is bounded by the bounding set. They stay until then where
// that set can be emptied, because the executable may lie where only they reach.
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
			break // past the last one that the kernel knows
		}
		if err != nil {
			bounded = false
			break
		}
	}
	// A failure means a kernel before ambient capabilities: none to clear.
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
