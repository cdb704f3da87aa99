// SPDX-License-Identifier: Apache-2.0

// Command unwindd-runtime-hotspot is the plugin of HotSpot as an executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/hotspot"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.ServeRuntime(hotspot.New()) }
