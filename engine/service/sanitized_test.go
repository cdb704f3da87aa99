// SPDX-License-Identifier: Apache-2.0

//go:build race || asan || msan

package service

// isSanitized says that the memory of workers is not bounded: a sanitizer needs more.
const isSanitized = true
