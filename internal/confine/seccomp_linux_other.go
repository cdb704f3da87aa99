// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64 && !arm64

package confine

// No filter is written for this machine.
const auditArch = 0

var deniedHere []denial
