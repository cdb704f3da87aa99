// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

// processesOf is unsupported here.
func processesOf(int) []int { return nil }

// isRunnable is unsupported here.
func isRunnable(int) bool { return false }
