// SPDX-License-Identifier: Apache-2.0

//go:build !race && !asan && !msan

package service

const isSanitized = false
