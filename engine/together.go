// SPDX-License-Identifier: Apache-2.0

package engine

// OpenProcessesOptions are the options of Engine.OpenProcesses.
type OpenProcessesOptions struct {
	// Each is called once for every process, when its stacks can be walked, with the target or the reason
	// why there is none. It closes the target. It is called by several goroutines.
	Each func(pid int, t *Target, err error)
	// DeviceCores are files with the state of the accelerators of processes, by process ID, as
	// Options.DeviceCore is one.
	DeviceCores map[int]string
}

// maxTogether bounds the processes that stand still at one moment: each takes a thread of this process, and
// memory for its copy.
const maxTogether = 1024
