// SPDX-License-Identifier: Apache-2.0

//go:build race || asan || msan

package plugin

// A sanitizer's shadow memory counts as data and spans terabytes.
const (
	dataLimit         = unlimited
	addressSpaceLimit = unlimited
)
