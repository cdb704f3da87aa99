// SPDX-License-Identifier: Apache-2.0

//go:build race

package cfi

// The race detector makes sync.Pool forget at random.
func init() { raceDetector = true }
