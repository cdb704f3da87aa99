// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

// processesOf is not known here.
func processesOf(int) []int { return nil }

// isRunnable is not known here.
func isRunnable(int) bool { return false }
