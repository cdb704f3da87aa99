// SPDX-License-Identifier: Apache-2.0

// Command unwindd-arch-aarch64 is the architecture plugin of AArch64 as an
// executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.Serve(aarch64.New()) }
