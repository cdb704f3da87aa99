// SPDX-License-Identifier: Apache-2.0

// Command unwindd-arch-visa is the architecture plugin of Intel's graphics
// processors as an executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.Serve(visa.New()) }
