// SPDX-License-Identifier: Apache-2.0

// Command unwindd-runtime-v8 is the plugin of V8 as an executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/v8"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.ServeRuntime(v8.New()) }
