// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

import (
	"errors"
	"time"
)

// Plugins are confined on Linux alone, and none runs unconfined: the bundled architectures run in
// this process.

// HasProcesses reports whether plugins run as processes of their own on this system.
const HasProcesses = false

var errNoProcesses = errors.New("plugins run as confined processes, which needs Linux (those that are bundled run without: --in-process): take a snapshot there (unwindd snapshot TARGET -o FILE), and read it here")

// directory is a private directory for sockets, of which there are none.
type directory struct{ path string }

func newDirectory() (*directory, error) { return nil, errNoProcesses }
func (*directory) remove()              {}
func removeRemaining()                  {}

// thisExecutable is unsupported here.
const thisExecutable = ""

// live starts nothing.
func (c *child) live(_ []uintptr, started chan<- error) { started <- errNoProcesses }

func killGroup(int) error                      { return nil }
func processesOf(int) []int                    { return nil }
func isRunnable(int) bool                      { return false }
func processorTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// ResidentMemory is unsupported here.
func ResidentMemory(int) uint64 { return 0 }

// GroupMemory and DescendantsOf are unsupported here.
func GroupMemory(int) uint64  { return 0 }
func DescendantsOf(int) []int { return nil }

// usage has the amounts that a process uses and that are bounded.
type usage struct{ memory, threads uint64 }

// usageOf is unsupported here.
func usageOf(int) usage { return usage{} }

// knowsPeers means that checkPeer checks.
const knowsPeers = false

// checkPeer checks nothing: no plugin is connected to.
func checkPeer(string, int) error { return nil }
