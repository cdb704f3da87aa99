// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package service

// descriptors returns how many descriptors every process may have.
func descriptors() int { return leastDescriptors }
