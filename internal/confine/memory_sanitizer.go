// SPDX-License-Identifier: Apache-2.0

//go:build race || asan || msan

package confine

// A sanitizer's shadow memory counts as data and spans terabytes.
const (
	DataLimit         = Unlimited
	addressSpaceLimit = Unlimited
)
